/** The draft as a whole: what it changes, what it would have done, and putting it in force. */
import { useEffect, useState } from "preact/hooks";
import { api } from "../api/calls";
import { asProblem, type Problem } from "../api/problem";
import type { Change, Trial } from "../api/types";
import { aboutOf, without } from "../logic/draft";
import { book, changes, checked, discard, draft, loadBook, publish, shown, stale } from "../state/book";
import { go } from "../state/place";
import { may } from "../state/session";
import { count, t } from "../state/words";
import { Diff } from "../ui/diff";
import { confirm } from "../ui/dialog";
import { Act, Card, Link, Sentence } from "../ui/parts";
import { StaleNote } from "./rules-stale";
import { TrialView } from "./rules-trial";

export function DraftView() {
    const list = changes.value;
    const [trial, setTrial] = useState<Trial | null>(null);
    const [problem, setProblem] = useState<Problem | null>(null);
    const [published, setPublished] = useState(false);
    // What was tried is another draft after every change.
    useEffect(() => setTrial(null), [JSON.stringify(list)]);
    if (list.length === 0 && stale.value.length === 0) {
        return (
            <Card>
                {published && <p class="good-text">{t("draft.published")}</p>}
                <p>
                    {t("draft.none")} <Link href="/rules">{t("rules.tab.list")}</Link>
                </p>
            </Card>
        );
    }
    const { mistakes, state } = checked.value;
    const ready = state === "asked" && mistakes.length === 0 && stale.value.length === 0;
    const put = () =>
        confirm({
            title: t("draft.publish.title"),
            text: count("draft.publish.text", list.length),
            yes: t("draft.publish"),
            act: async () => {
                setProblem(null);
                try {
                    await publish();
                    setPublished(true);
                } catch (error) {
                    const problem = asProblem(error);
                    // Explained here, piece by piece, once the newest is read.
                    if (problem.status !== 409 && problem.status !== 422) throw problem;
                    setProblem(problem);
                    await loadBook();
                }
            },
        });
    return (
        <div class="stack">
            <Sentence problem={problem} />
            {stale.value.map(({ mine, now }) => (
                <Card key={mine.base.id} title={aboutOf(mine.base)}>
                    <StaleNote mine={mine} now={now} />
                </Card>
            ))}
            {mistakes.length > 0 && (
                <Card class="attention" title={count("draft.mistakes", mistakes.length)}>
                    <ul class="mistakes">
                        {mistakes.map((mistake, i) => (
                            <li key={i}>
                                <Link href={pieceAddress(mistake.piece, mistake.about)}>
                                    {mistake.about}{" "}
                                    {t("editor.line", { line: mistake.line, column: mistake.column })}
                                </Link>{" "}
                                {mistake.path && <code>{mistake.path}</code>} {mistake.message}
                            </li>
                        ))}
                    </ul>
                </Card>
            )}
            <div class="acts publish-acts">
                <Act
                    act={async () => setTrial(await api.try(changes.value))}
                    disabled={mistakes.length > 0}
                    onProblem={setProblem}
                >
                    {t("draft.try")}
                </Act>
                <Act needs="admin" class="main" act={put} disabled={!ready}>
                    {t("draft.publish")}
                </Act>
                <Act
                    act={() =>
                        confirm({
                            title: t("draft.discard.title"),
                            text: count("draft.discard.text", list.length),
                            yes: t("draft.discard"),
                            tone: "bad",
                            act: async () => {
                                discard();
                                go("/rules");
                            },
                        })
                    }
                >
                    {t("draft.discard")}
                </Act>
                {!may("admin") && <span class="hint">{t("may.not", { role: t("role.admin") })}</span>}
            </div>
            {trial && <TrialView trial={trial} />}
            <Card title={count("draft.changes", list.length)}>
                <ul class="change-list">
                    {list.map((change, i) => (
                        <ChangeRow key={i} change={change} />
                    ))}
                </ul>
            </Card>
        </div>
    );
}

function pieceAddress(piece: number | null, about: string): string {
    const found = shown.value.find((one) =>
        piece === null ? one.piece === null && aboutOf(one) === about : one.id === piece,
    );
    if (found?.kind === "file" || !found) return "/rules";
    return `/rules?piece=${found.id}`;
}

function ChangeRow({ change }: { change: Change }) {
    const piece = "id" in change ? book.value?.pieces.find((one) => one.id === change.id) : undefined;
    const mine = "id" in change ? draft.value.pieces[change.id] : undefined;
    const fresh =
        change.change === "create"
            ? draft.value.fresh.find(
                  (one) => one.kind === change.kind && one.name === change.name && one.route === change.route,
              )
            : undefined;
    const about =
        change.change === "create"
            ? aboutOf({ ...change, route: change.route ?? null })
            : piece
              ? aboutOf(piece)
              : "";
    const undo = () => {
        if (change.change === "move") {
            const { [`${piece?.kind}:${piece?.route ?? ""}`]: _, ...orders } = draft.value.orders;
            draft.value = { ...draft.value, orders };
        } else {
            const id = fresh?.id ?? ("id" in change ? change.id : 0);
            draft.value = without(draft.value, id);
        }
    };
    return (
        <li>
            <div class="change-head">
                <span>
                    <strong>{t(`change.${change.change}`)}</strong> {about}
                    {change.change === "edit" && change.name && <> → {change.name}</>}
                    {change.change === "enable" && <> {t(change.enabled ? "on" : "off")}</>}
                    {change.change === "move" && <> {beforeWhom(change.before)}</>}
                </span>
                <button
                    type="button"
                    class="quiet"
                    aria-label={`${t("piece.undo")}: ${t(`change.${change.change}`)} ${about}`}
                    onClick={undo}
                >
                    {t("piece.undo")}
                </button>
            </div>
            {change.change === "edit" && mine && <Diff before={mine.base.text} after={change.text} />}
            {change.change === "create" && <Diff before="" after={change.text} />}
        </li>
    );
}

function beforeWhom(before: number | null): string {
    const other = book.value?.pieces.find((one) => one.id === before);
    return other ? t("change.before", { name: other.name }) : t("change.last");
}
