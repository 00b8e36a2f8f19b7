/** What was done, by whom, newest first. */
import { useEffect, useState } from "preact/hooks";
import { api } from "../api/calls";
import { asProblem, type Problem } from "../api/problem";
import type { AuditEntry } from "../api/types";
import { moment } from "../logic/format";
import { told } from "../state/live";
import { locale, t } from "../state/words";
import { Diff } from "../ui/diff";
import { Act, Badge, Card, Sentence, Waiting } from "../ui/parts";

const PAGE = 50;

export function HistoryView() {
    const [entries, setEntries] = useState<AuditEntry[] | null>(null);
    const [isAll, setAll] = useState(false);
    const [problem, setProblem] = useState<Problem | null>(null);
    const load = async (before: number | null) => {
        const { entries: next } = await api.audit(before, PAGE);
        setEntries((old) => (before === null ? next : [...(old ?? []), ...next]));
        setAll(next.length < PAGE);
    };
    useEffect(() => {
        load(null).then(
            () => setProblem(null),
            (error: unknown) => setProblem(asProblem(error)),
        );
    }, [told.value]);
    return (
        <Card title={t("history.title")}>
            <Sentence problem={problem} />
            {!entries && !problem && <Waiting />}
            {entries?.length === 0 && <p class="waiting">{t("history.none")}</p>}
            <ol class="history">
                {entries?.map((entry) => (
                    <Entry key={entry.number} entry={entry} />
                ))}
            </ol>
            {entries && entries.length > 0 && !isAll && (
                <Act act={() => load(entries.at(-1)?.number ?? null)} onProblem={setProblem}>
                    {t("history.more")}
                </Act>
            )}
        </Card>
    );
}

const isSwitch = (text: string | null) => text === "on" || text === "off";

/** Which way a switch was turned, or that it stood so before. */
function Turned({ entry }: { entry: AuditEntry }) {
    const word = (text: string | null) => t(text === "on" ? "on" : "off");
    return (
        <>
            {entry.before !== entry.after && <span class="muted">{word(entry.before)} → </span>}
            <Badge tone={entry.after === "on" ? "passed" : "refused"}>{word(entry.after)}</Badge>
        </>
    );
}

function Entry({ entry }: { entry: AuditEntry }) {
    const turned = isSwitch(entry.before) && isSwitch(entry.after);
    // Of a switch the row says all there is.
    const differs = !turned && (entry.before !== null || entry.after !== null);
    const head = (
        <>
            <time class="muted">{moment(entry.at_ms, locale())}</time>
            <strong>{entry.by}</strong>
            <span>
                <span class="badge">{entry.action}</span> {entry.about} {turned && <Turned entry={entry} />}
            </span>
        </>
    );
    return (
        <li>
            {differs ? (
                <details>
                    <summary class="history-head">{head}</summary>
                    <Diff before={entry.before ?? ""} after={entry.after ?? ""} />
                </details>
            ) : (
                <div class="history-head">{head}</div>
            )}
        </li>
    );
}
