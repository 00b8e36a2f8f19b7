/** What keys do, and where more is written. */
import { helpShown, letShortcuts, shortcutsOn } from "../state/shortcuts";
import { t, type WordKey } from "../state/words";
import { Dialog } from "./dialog";

const KEYS: [string[], WordKey][] = [
    [["g", "o"], "nav.overview"],
    [["g", "r"], "nav.rules"],
    [["g", "d"], "help.draft"],
    [["g", "h"], "help.history"],
    [["g", "k"], "nav.keys"],
    [["g", "p"], "nav.playground"],
    [["g", "n"], "nav.nodes"],
    [["/"], "help.find"],
    [["Alt", "↑"], "help.up"],
    [["Alt", "↓"], "help.down"],
    [["Ctrl", "Enter"], "help.review"],
    [["t"], "help.theme"],
    [["l"], "help.language"],
    [["?"], "help.this"],
    [["Esc"], "help.close"],
];

export function Help() {
    const close = () => (helpShown.value = false);
    return (
        <Dialog title={t("help.title")} close={close} class="help">
            <dl class="keys-list">
                {KEYS.map(([keys, word]) => (
                    <div key={word}>
                        <dt>
                            {keys.map((key) => (
                                <kbd key={key}>{key}</kbd>
                            ))}
                        </dt>
                        <dd>{t(word)}</dd>
                    </div>
                ))}
            </dl>
            <label class="check">
                <input
                    type="checkbox"
                    checked={shortcutsOn.value}
                    onChange={(event) => letShortcuts(event.currentTarget.checked)}
                />
                {t("help.on")}
            </label>
            <div class="dialog-acts">
                <button type="button" class="button main" onClick={close} autofocus>
                    {t("close")}
                </button>
            </div>
        </Dialog>
    );
}
