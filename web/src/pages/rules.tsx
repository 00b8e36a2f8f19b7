/** The rules: what is in force, what somebody is drafting, what was done. */
import { useEffect } from "preact/hooks";
import { book, bookProblem, changes, checked, discard, loadBook, stale } from "../state/book";
import { told } from "../state/live";
import { place } from "../state/place";
import { count, t } from "../state/words";
import { confirm } from "../ui/dialog";
import { Heading, Link, Sentence, Waiting } from "../ui/parts";
import { DraftView } from "./rules-draft";
import { FileView } from "./rules-file";
import { HistoryView } from "./rules-history";
import { RuleList } from "./rules-list";
import { PieceEditor } from "./rules-piece";

export function RulesPage({ path }: { path: string }) {
    // Whoever changes rules elsewhere is told by the stream; whoever comes back reads anew.
    useEffect(() => void loadBook(), [told.value]);
    const kept = book.value;
    const n = changes.value.length;
    return (
        <>
            <Heading
                aside={
                    kept && (
                        <span class="muted source">
                            {t(`source.${kept.source.kind}`)} <span class="mono">{kept.source.name}</span>
                        </span>
                    )
                }
            >
                {t("nav.rules")}
            </Heading>
            <nav class="tabs" aria-label={t("nav.rules")}>
                <Tab href="/rules" path={path} word={t("rules.tab.list")} />
                <Tab href="/rules/draft" path={path} word={t("rules.tab.draft")} n={n} />
                <Tab href="/rules/history" path={path} word={t("rules.tab.history")} />
            </nav>
            <Sentence problem={bookProblem.value} />
            {!kept && !bookProblem.value && <Waiting />}
            {kept?.source.read_only && (
                <p class="sentence">
                    {t("rules.readOnly")} {kept.source.read_only}
                </p>
            )}
            {path === "/rules/history" && <HistoryView />}
            {kept && path === "/rules" && (kept.source.kind === "file" ? <FileView /> : <Pieces />)}
            {kept && path === "/rules/draft" && <DraftView />}
            {kept && path === "/rules" && n > 0 && <DraftBar />}
        </>
    );
}

function Tab({ href, path, word, n = 0 }: { href: string; path: string; word: string; n?: number }) {
    return (
        <Link href={href} aria-current={path === href ? "page" : undefined}>
            {word}
            {n > 0 && <span class="nav-count">{n}</span>}
        </Link>
    );
}

function Pieces() {
    const asked = Number(place.value.query.get("piece") ?? Number.NaN);
    const chosen = Number.isFinite(asked) ? asked : null;
    return (
        <div class={`columns rules-columns${chosen === null ? "" : " chosen"}`}>
            <RuleList chosen={chosen} />
            {chosen === null ? (
                <p class="choose muted">{t("rules.choose")}</p>
            ) : (
                <PieceEditor key={chosen} id={chosen} />
            )}
        </div>
    );
}

/** How the draft stands, always in sight while there is one. */
function DraftBar() {
    const { state, mistakes, problem } = checked.value;
    const n = changes.value.length;
    return (
        <div class="draft-bar" role="region" aria-label={t("rules.tab.draft")}>
            <span role="status">
                <strong>{count("draft.changes", n)}</strong>{" "}
                {stale.value.length > 0 ? (
                    <span class="bad-text">{count("draft.staleCount", stale.value.length)}</span>
                ) : state === "asking" ? (
                    <span class="muted">{t("draft.checking")}</span>
                ) : mistakes.length > 0 ? (
                    <span class="bad-text">{count("draft.mistakes", mistakes.length)}</span>
                ) : problem ? (
                    <span class="bad-text">{t("draft.unchecked")}</span>
                ) : (
                    <span class="good-text">{t("draft.good")}</span>
                )}
            </span>
            <span class="acts">
                <button
                    type="button"
                    class="quiet"
                    onClick={() =>
                        confirm({
                            title: t("draft.discard.title"),
                            text: count("draft.discard.text", n),
                            yes: t("draft.discard"),
                            tone: "bad",
                            act: async () => discard(),
                        })
                    }
                >
                    {t("draft.discard")}
                </button>
                <Link class="button main" href="/rules/draft">
                    {t("draft.review")}
                </Link>
            </span>
        </div>
    );
}
