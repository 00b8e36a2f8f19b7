/** An algorithm and some traffic: who passes, computed by the server's own code. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { api } from "../api/calls";
import { asProblem, type Problem } from "../api/problem";
import type { Mistake, Play, Played, Shape } from "../api/types";
import { percent, whole } from "../logic/format";
import { ALGORITHMS, written } from "../logic/limits";
import { binned } from "../logic/played";
import { locale, t } from "../state/words";
import { Chart } from "../ui/chart";
import { Card, Heading, Sentence, Waiting } from "../ui/parts";
import { Strip } from "../ui/strip";

const SHAPES: Shape[] = ["steady", "burst", "wave", "poisson", "spike"];
const TYPING_MS = 200;

interface Wanted {
    kind: string;
    values: Record<string, Record<string, string>>;
    shape: Shape;
    rate: number;
    seconds: number;
    cost: number;
    seed: number;
    waitMs: number;
    holdMs: number;
}

const FIRST: Wanted = {
    kind: "token_bucket",
    values: Object.fromEntries(
        ALGORITHMS.map((one) => [
            one.kind,
            Object.fromEntries(one.settings.map(({ name, value }) => [name, value])),
        ]),
    ),
    shape: "wave",
    rate: 20,
    seconds: 10,
    cost: 1,
    seed: 1,
    waitMs: 0,
    holdMs: 500,
};

export function PlaygroundPage() {
    const [wanted, setWanted] = useState(FIRST);
    const [played, setPlayed] = useState<{ play: Play; result: Played } | null>(null);
    const [problem, setProblem] = useState<Problem | null>(null);
    const algorithm = ALGORITHMS.find((one) => one.kind === wanted.kind)!;
    const limit = written(wanted.kind, wanted.values[wanted.kind] ?? {});
    const play = useMemo((): Play => {
        const { shape, rate, seconds, cost, seed, waitMs, holdMs } = wanted;
        const asked: Play = {
            limit,
            traffic: { shape, rate, seconds, cost, seed },
            wait_ms: algorithm.books ? waitMs : 0,
        };
        return algorithm.holds ? { ...asked, hold_ms: holdMs } : asked;
    }, [wanted]);
    useEffect(() => {
        const asking = new AbortController();
        const timer = window.setTimeout(async () => {
            try {
                const result = await api.play(play, asking.signal);
                setPlayed({ play, result });
                setProblem(null);
            } catch (error) {
                if (!asking.signal.aborted) setProblem(asProblem(error));
            }
        }, TYPING_MS);
        return () => {
            window.clearTimeout(timer);
            asking.abort();
        };
    }, [play]);
    return (
        <>
            <Heading>{t("nav.playground")}</Heading>
            <p class="lead">{t("play.lead")}</p>
            <div class="columns play-columns">
                <Controls wanted={wanted} want={(change) => setWanted({ ...wanted, ...change })} />
                <div class="stack">
                    <Card title={t("play.limit")} aside={<CopyButton text={limit} />}>
                        <pre class="written">{limit}</pre>
                        <Wrong problem={problem} />
                    </Card>
                    <Card title={t("play.result")}>
                        {!played && !problem && <Waiting />}
                        {played && <Result {...played} isOld={problem !== null} />}
                    </Card>
                </div>
            </div>
        </>
    );
}

/** What the server says about the limit as it is written; one line, so the place is left out. */
function Wrong({ problem }: { problem: Problem | null }) {
    if (!problem) return null;
    if (problem.mistakes.length === 0) return <Sentence problem={problem} />;
    return (
        <ul class="mistakes" role="alert">
            {problem.mistakes.map((mistake: Mistake, i) => (
                <li key={i}>
                    {mistake.path && <code>{mistake.path}</code>} {mistake.message}
                </li>
            ))}
        </ul>
    );
}

function Controls({ wanted, want }: { wanted: Wanted; want: (change: Partial<Wanted>) => void }) {
    const algorithm = ALGORITHMS.find((one) => one.kind === wanted.kind)!;
    const values = wanted.values[wanted.kind] ?? {};
    const set = (name: string, value: string) =>
        want({ values: { ...wanted.values, [wanted.kind]: { ...values, [name]: value } } });
    return (
        <form class="stack" onSubmit={(event) => event.preventDefault()}>
            <Card title={t("play.algorithm")}>
                <label class="field">
                    <span class="unseen">{t("play.algorithm")}</span>
                    <select
                        data-find
                        value={wanted.kind}
                        onChange={(event) => want({ kind: event.currentTarget.value })}
                    >
                        {ALGORITHMS.map(({ kind }) => (
                            <option key={kind} value={kind}>
                                {kind}
                            </option>
                        ))}
                    </select>
                </label>
                <p class="hint">{t(`algorithm.${wanted.kind}` as "algorithm.token_bucket")}</p>
                <div class="field-row">
                    {algorithm.settings.map(({ name, optional }) => (
                        <label class="field" key={wanted.kind + name}>
                            <span>{name}</span>
                            <input
                                value={values[name] ?? ""}
                                placeholder={optional ? t("play.usual") : ""}
                                autocomplete="off"
                                spellcheck={false}
                                onInput={(event) => set(name, event.currentTarget.value)}
                            />
                        </label>
                    ))}
                </div>
            </Card>
            <Card title={t("play.traffic")}>
                <label class="field">
                    <span>{t("play.shape")}</span>
                    <select
                        value={wanted.shape}
                        onChange={(event) => want({ shape: event.currentTarget.value as Shape })}
                    >
                        {SHAPES.map((shape) => (
                            <option key={shape} value={shape}>
                                {t(`shape.${shape}`)}
                            </option>
                        ))}
                    </select>
                </label>
                <div class="field-row">
                    <Amount
                        label={t("play.rate")}
                        min={0.1}
                        max={1000}
                        step="any"
                        value={wanted.rate}
                        set={(rate) => want({ rate })}
                    />
                    <Amount
                        label={t("play.seconds")}
                        min={1}
                        max={600}
                        value={wanted.seconds}
                        set={(seconds) => want({ seconds })}
                    />
                    <Amount
                        label={t("play.cost")}
                        min={1}
                        max={10000}
                        value={wanted.cost}
                        set={(cost) => want({ cost })}
                    />
                    {algorithm.books && (
                        <Amount
                            label={t("play.wait")}
                            min={0}
                            max={600_000}
                            value={wanted.waitMs}
                            set={(waitMs) => want({ waitMs })}
                        />
                    )}
                    {algorithm.holds && (
                        <Amount
                            label={t("play.hold")}
                            min={1}
                            max={600_000}
                            value={wanted.holdMs}
                            set={(holdMs) => want({ holdMs })}
                        />
                    )}
                    <Amount
                        label={t("play.seed")}
                        min={0}
                        max={1_000_000}
                        value={wanted.seed}
                        set={(seed) => want({ seed })}
                    />
                </div>
            </Card>
        </form>
    );
}

function Amount(props: {
    label: string;
    min: number;
    max: number;
    step?: string;
    value: number;
    set: (n: number) => void;
}) {
    return (
        <label class="field">
            <span>{props.label}</span>
            <input
                type="number"
                min={props.min}
                max={props.max}
                step={props.step ?? 1}
                value={props.value}
                onInput={(event) => {
                    const n = event.currentTarget.valueAsNumber;
                    if (Number.isFinite(n) && event.currentTarget.validity.valid) props.set(n);
                }}
            />
        </label>
    );
}

function Result({ play, result, isOld }: { play: Play; result: Played; isOld: boolean }) {
    const all = result.passed + result.delayed + result.refused;
    const bins = useMemo(() => binned(result.arrivals, play.traffic.seconds), [result]);
    const lines = [
        { label: t("outcome.refused"), tone: "refused", values: bins.refused },
        { label: t("outcome.delayed"), tone: "delayed", values: bins.delayed },
        { label: t("outcome.passed"), tone: "passed", values: bins.passed },
    ].map(({ values, ...line }) => ({ ...line, filled: true, told: (i: number) => values[i] ?? 0 }));
    const told = {
        passed: whole(result.passed, locale()),
        delayed: whole(result.delayed, locale()),
        refused: whole(result.refused, locale()),
    };
    return (
        <div class={isOld ? "old" : ""}>
            <p class="play-sums" aria-live="polite">
                {(["passed", "delayed", "refused"] as const).map((outcome) => (
                    <span key={outcome} class={`sum ${outcome}`}>
                        <strong>{told[outcome]}</strong> {t(`outcome.${outcome}`)}{" "}
                        <span class="muted">{percent(result[outcome], all, locale())}</span>
                    </span>
                ))}
            </p>
            {result.summary && <p class="muted">{result.summary}</p>}
            <Chart
                data={bins.stacked}
                lines={lines}
                height={240}
                x="seconds"
                xRange={[0, play.traffic.seconds]}
                paths="bars"
                label={t("overview.chart", told)}
            />
            <p class="hint">{t("play.bins", { ms: whole(bins.widthMs, locale()) })}</p>
            <h3>{t("play.each")}</h3>
            <Strip
                arrivals={result.arrivals}
                seconds={play.traffic.seconds}
                label={t("overview.chart", told)}
            />
        </div>
    );
}

function CopyButton({ text }: { text: string }) {
    const [copied, setCopied] = useState(false);
    return (
        <button
            type="button"
            class="quiet"
            onClick={async () => {
                try {
                    await navigator.clipboard.writeText(text);
                    setCopied(true);
                    setTimeout(() => setCopied(false), 1500);
                } catch {
                    // Not every browser lets a page without TLS; the text is there to be marked.
                }
            }}
        >
            {t(copied ? "copied" : "copy")}
        </button>
    );
}
