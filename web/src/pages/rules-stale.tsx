/** Somebody else was faster: what they did, and what can be done about it. */
import type { Piece } from "../api/types";
import { asNew, type Drafted, onTopOf, without } from "../logic/draft";
import { moment } from "../logic/format";
import { draft } from "../state/book";
import { locale, t } from "../state/words";
import { Diff } from "../ui/diff";

export function StaleNote({ mine, now }: { mine: Drafted; now: Piece | null }) {
    const by = now?.changed.by || t("stale.somebody");
    return (
        <div class="sentence bad stale">
            <p>
                {now
                    ? t("stale.changed", {
                          by,
                          at: moment(now.changed.at_ms, locale()),
                          was: mine.base.version,
                          is: now.version,
                      })
                    : t("stale.gone")}
            </p>
            {now && now.text !== mine.base.text && (
                <details>
                    <summary>{t("stale.theirs", { by })}</summary>
                    <Diff before={mine.base.text} after={now.text} />
                </details>
            )}
            <div class="acts">
                {now ? (
                    <button
                        type="button"
                        class="button"
                        onClick={() => (draft.value = onTopOf(draft.value, now))}
                    >
                        {t("stale.mine")}
                    </button>
                ) : (
                    !mine.deleted && (
                        <button
                            type="button"
                            class="button"
                            onClick={() => (draft.value = asNew(draft.value, mine.base.id))}
                        >
                            {t("stale.again")}
                        </button>
                    )
                )}
                <button
                    type="button"
                    class="button"
                    onClick={() => (draft.value = without(draft.value, mine.base.id))}
                >
                    {t(now ? "stale.take" : "stale.drop")}
                </button>
            </div>
            <p class="hint">{t("stale.hint")}</p>
        </div>
    );
}
