/** What is going on, at a glance: how much passes, waits and is refused, by which rule, and what needs somebody. */
import { useMemo, useState } from "preact/hooks";
import type { AlignedData } from "uplot";
import { api } from "../api/calls";
import { clock, percent, rate, whole } from "../logic/format";
import { fromUsage, nameOf, ranked, rateOf, type Row, shadowsOf, sum, type Traffic } from "../logic/traffic";
import { link, traffic } from "../state/live";
import { usePolled } from "../state/polled";
import { status, statusProblem } from "../state/status";
import { locale, t } from "../state/words";
import { Chart, Spark } from "../ui/chart";
import { Badge, Card, Choice, Heading, Link, Sentence, Waiting } from "../ui/parts";
import { Refused } from "./refused";

type Span = "300" | "3600" | "86400";
const OUTCOMES = ["passed", "delayed", "refused"] as const;
/** Figures are means of so many seconds: one second alone jumps too much to be read. */
const MEAN = 5;

export function OverviewPage() {
    const [span, setSpan] = useState<Span>("300");
    const every = span === "300" ? (link.value === "half" ? 3000 : null) : span === "3600" ? 10_000 : 60_000;
    const longer = usePolled(async () => fromUsage(await api.usage(Number(span))), every, [span]);
    const shown = span === "300" && link.value !== "half" ? (traffic.value ?? longer.value) : longer.value;
    // The live stream does not tell of shadows. A minute of them, so that the column does not come and go.
    const shadows = usePolled(async () => shadowsOf(await api.usage(60), MEAN), 2000);
    const now = traffic.value ?? (span === "300" ? longer.value : null);
    return (
        <>
            <Heading aside={<Ready />}>{t("nav.overview")}</Heading>
            <Problems />
            <section class="figures" aria-label={t("overview.figures")}>
                {OUTCOMES.map((outcome) => (
                    <Figure key={outcome} outcome={outcome} traffic={now} />
                ))}
            </section>
            <Card
                title={t("overview.traffic")}
                aside={
                    <Choice
                        label={t("overview.span")}
                        value={span}
                        of={[
                            { value: "300", text: t("span.5m") },
                            { value: "3600", text: t("span.1h") },
                            { value: "86400", text: t("span.1d") },
                        ]}
                        choose={setSpan}
                    />
                }
            >
                <Sentence problem={shown ? null : longer.problem} />
                {shown ? <TrafficChart traffic={shown} /> : !longer.problem && <Waiting />}
            </Card>
            <div class="columns wide-left">
                <Card
                    title={t("overview.byRule")}
                    aside={<span class="muted">{t("overview.mean", { n: MEAN })}</span>}
                >
                    {now ? (
                        <ByRule
                            rows={ranked(now.rows)}
                            stepMs={now.stepMs}
                            shadows={shadows.value ?? new Map()}
                        />
                    ) : (
                        <Waiting />
                    )}
                </Card>
                <Refused />
            </div>
        </>
    );
}

function Ready() {
    const now = status.value;
    if (!now) return null;
    return <Badge tone={now.ready ? "passed" : "refused"}>{t(now.ready ? "ready" : "ready.not")}</Badge>;
}

function Problems() {
    const now = status.value;
    const failure = now?.rules.failure;
    if (!now) return <Sentence problem={statusProblem.value} />;
    if (now.problems.length === 0 && !failure) return null;
    return (
        <Card class="attention" title={t("overview.attention")}>
            <ul class="plain-list">
                {now.problems.map((problem) => (
                    <li key={problem}>{problem}</li>
                ))}
                {failure && (
                    <li>
                        {t("overview.rulesFailed", { at: clock(failure.at_ms, locale()) })} {failure.why}{" "}
                        <Link href="/nodes">{t("more")}</Link>
                    </li>
                )}
            </ul>
        </Card>
    );
}

function Figure({ outcome, traffic }: { outcome: (typeof OUTCOMES)[number]; traffic: Traffic | null }) {
    const values = traffic?.total[outcome] ?? [];
    const all = OUTCOMES.reduce((total, one) => total + sum(traffic?.total[one] ?? []), 0);
    return (
        <div class={`figure ${outcome}`}>
            <p class="figure-name">{t(`outcome.${outcome}`)}</p>
            <p class="figure-value">
                {traffic ? rate(rateOf(values, traffic.stepMs, MEAN), locale()) : "–"}
                <span class="figure-unit">{t("perSecond")}</span>
            </p>
            <p class="figure-note">
                {traffic &&
                    t("overview.share", {
                        n: whole(sum(values), locale()),
                        share: percent(sum(values), all, locale()),
                    })}
            </p>
            <Spark values={values.slice(-90)} tone={outcome} max={Math.max(1, ...values.slice(-90))} />
        </div>
    );
}

function TrafficChart({ traffic }: { traffic: Traffic }) {
    const { passed, delayed, refused } = traffic.total;
    const perSecond = 1000 / traffic.stepMs;
    const data = useMemo((): AlignedData => {
        const x = passed.map((_, i) => (traffic.fromMs + i * traffic.stepMs) / 1000);
        const some = passed.map((n) => n * perSecond);
        const more = some.map((n, i) => n + (delayed[i] ?? 0) * perSecond);
        const all = more.map((n, i) => n + (refused[i] ?? 0) * perSecond);
        return [x, all, more, some];
    }, [traffic]);
    const lines = [
        { label: t("outcome.refused"), tone: "refused", values: refused },
        { label: t("outcome.delayed"), tone: "delayed", values: delayed },
        { label: t("outcome.passed"), tone: "passed", values: passed },
    ].map(({ values, ...line }) => ({
        ...line,
        filled: true,
        told: (i: number) => (values[i] ?? 0) * perSecond,
    }));
    const label = t("overview.chart", {
        passed: whole(sum(passed), locale()),
        delayed: whole(sum(delayed), locale()),
        refused: whole(sum(refused), locale()),
    });
    return <Chart data={data} lines={lines} height={220} label={label} />;
}

function ByRule(props: { rows: Row[]; stepMs: number; shadows: Map<string, number> }) {
    const { rows, stepMs, shadows } = props;
    if (rows.length === 0) return <p class="waiting">{t("overview.quiet")}</p>;
    const most = Math.max(1, ...rows.flatMap((row) => row.refused.slice(-90)));
    return (
        <>
            <div class="scroll" tabIndex={0} role="group" aria-label={t("overview.byRule")}>
                <table class="table by-rule">
                    <thead>
                        <tr>
                            <th scope="col">{t("rule")}</th>
                            {OUTCOMES.map((outcome) => (
                                <th scope="col" class="number" key={outcome}>
                                    {t(`outcome.${outcome}`)}
                                </th>
                            ))}
                            {shadows.size > 0 && (
                                <th scope="col" class="number">
                                    {t("overview.shadow")}
                                </th>
                            )}
                            <th scope="col" class="spark-cell">
                                <span class="unseen">{t("overview.refusedLately")}</span>
                            </th>
                        </tr>
                    </thead>
                    <tbody>
                        {rows.map((row) => (
                            <tr key={nameOf(row)}>
                                <th scope="row">
                                    <RuleName row={row} />
                                </th>
                                {OUTCOMES.map((outcome) => {
                                    const value = rateOf(row[outcome], stepMs, MEAN);
                                    return (
                                        <td key={outcome} class={`number ${value > 0 ? outcome : "none"}`}>
                                            {value > 0 ? rate(value, locale()) : "·"}
                                        </td>
                                    );
                                })}
                                {shadows.size > 0 && <Shadow value={shadows.get(nameOf(row)) ?? 0} />}
                                <td class="spark-cell">
                                    <Spark values={row.refused.slice(-90)} tone="refused" max={most} />
                                </td>
                            </tr>
                        ))}
                    </tbody>
                </table>
            </div>
            {shadows.size > 0 && <p class="hint">{t("overview.shadow.text")}</p>}
        </>
    );
}

function Shadow({ value }: { value: number }) {
    return (
        <td class={`number ${value > 0 ? "shadow" : "none"}`}>{value > 0 ? rate(value, locale()) : "·"}</td>
    );
}

function RuleName({ row }: { row: Row }) {
    if (row.door) {
        return (
            <>
                <span class="muted">{row.door}</span> {row.limit}
            </>
        );
    }
    return (
        <>
            <span class="muted">{row.route ?? t("everywhere")} /</span> {row.rule}
        </>
    );
}
