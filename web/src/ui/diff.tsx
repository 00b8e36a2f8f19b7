/** Two texts, and what differs. */
import { diffLines, folded } from "../logic/diff";
import { count, t } from "../state/words";

export function Diff({ before, after }: { before: string; after: string }) {
    const parts = folded(diffLines(before, after));
    if (parts.every((part) => part.kind === "skipped")) return <p class="waiting">{t("diff.none")}</p>;
    return (
        <div class="diff" role="group" aria-label={t("diff.label")} tabIndex={0}>
            {parts.map((part, i) =>
                part.kind === "skipped" ? (
                    <div key={i} class="diff-skipped">
                        {count("diff.skipped", part.lines)}
                    </div>
                ) : (
                    <div key={i} class={`diff-line ${part.kind}`}>
                        <span class="diff-number" aria-hidden="true">
                            {part.new ?? part.old}
                        </span>
                        <span class="diff-sign">
                            {part.kind === "new" ? "+" : part.kind === "gone" ? "−" : " "}
                        </span>
                        <span class="diff-text">{part.text}</span>
                    </div>
                ),
            )}
        </div>
    );
}
