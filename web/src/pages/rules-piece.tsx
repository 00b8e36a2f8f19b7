/** One piece of the book, being read or changed. Changes go to the draft as they are typed. */
import { aboutOf, type Shown, wishing, without } from "../logic/draft";
import { moment } from "../logic/format";
import { book, draft, mistakesIn, shown, stale } from "../state/book";
import { go } from "../state/place";
import { may } from "../state/session";
import { locale, t } from "../state/words";
import { Diff } from "../ui/diff";
import { Editor } from "../ui/editor";
import { BackIcon } from "../ui/icons";
import { Card, Link, Switch } from "../ui/parts";
import { StaleNote } from "./rules-stale";

export function PieceEditor({ id }: { id: number }) {
    const one = shown.value.find((piece) => piece.id === id);
    if (!one) {
        return (
            <Card class="piece-editor">
                <p>{t("piece.gone")}</p>
                <Link href="/rules">{t("rules.back")}</Link>
            </Card>
        );
    }
    const readOnly = !may("admin") || Boolean(book.value?.source.read_only) || one.state === "deleted";
    const gone = stale.value.find(({ mine }) => mine.base.id === id);
    const mistakes = mistakesIn(id);
    return (
        <Card
            class="piece-editor"
            title={
                <>
                    <Link href="/rules" class="back" aria-label={t("rules.back")}>
                        <BackIcon />
                    </Link>
                    <span class="muted">{t(`kind.${one.kind}`)}</span>{" "}
                    {one.route === null ? "" : `${one.route}/`}
                    {one.name}
                </>
            }
            aside={<Buttons one={one} />}
        >
            {gone && <StaleNote mine={gone.mine} now={gone.now} />}
            <div class="piece-fields">
                <label class="field">
                    <span>{t("piece.name")}</span>
                    <input
                        value={one.name}
                        readOnly={readOnly}
                        spellcheck={false}
                        autocomplete="off"
                        onInput={(event) => change(one, { name: event.currentTarget.value })}
                    />
                </label>
                {(one.kind === "route" || (one.kind === "rule" && one.piece === null)) && !readOnly && (
                    <Switch
                        on={one.enabled}
                        label={t("piece.enabled")}
                        turn={(enabled) => change(one, { enabled })}
                    >
                        <span class="switch-word">{t(one.enabled ? "on" : "off")}</span>
                    </Switch>
                )}
            </div>
            <Editor
                label={t("piece.text", { name: aboutOf(one) })}
                value={one.text}
                mistakes={mistakes}
                readOnly={readOnly}
                change={(text) => change(one, { text })}
                done={() => go("/rules/draft")}
            />
            {one.piece && (
                <p class="hint">
                    {t("piece.changed", {
                        version: one.piece.version,
                        by: one.piece.changed.by || "–",
                        at: moment(one.piece.changed.at_ms, locale()),
                    })}
                </p>
            )}
            {one.piece && one.state === "changed" && one.text !== one.piece.text && (
                <details class="differs">
                    <summary>{t("piece.differs")}</summary>
                    <Diff before={one.piece.text} after={one.text} />
                </details>
            )}
        </Card>
    );
}

function change(
    one: Shown,
    wish: { name?: string; text?: string; enabled?: boolean; deleted?: boolean },
): void {
    if (one.piece) draft.value = wishing(draft.value, one.piece, wish);
    else
        draft.value = {
            ...draft.value,
            fresh: draft.value.fresh.map((fresh) => (fresh.id === one.id ? { ...fresh, ...wish } : fresh)),
        };
}

function Buttons({ one }: { one: Shown }) {
    if (!may("admin") || book.value?.source.read_only) return null;
    const undo = () => {
        draft.value = without(draft.value, one.id);
        if (!one.piece) go("/rules");
    };
    return (
        <span class="acts">
            {one.state !== "as it is" && (
                <button type="button" class="quiet" onClick={undo}>
                    {t("piece.undo")}
                </button>
            )}
            {one.piece && one.state !== "deleted" && (
                <button type="button" class="quiet bad-text" onClick={() => change(one, { deleted: true })}>
                    {t("piece.delete")}
                </button>
            )}
        </span>
    );
}
