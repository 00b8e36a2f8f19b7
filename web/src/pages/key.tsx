/** One key: what it has left, drawn as it goes, and what can be done for it or against it. */
import { useEffect, useState } from "preact/hooks";
import type { AlignedData } from "uplot";
import { api } from "../api/calls";
import { asProblem, type Problem } from "../api/problem";
import type { KeyName, KeyState } from "../api/types";
import { othersMayRefuse } from "../logic/beside";
import { keyText, rate, span, whole } from "../logic/format";
import { inForce } from "../state/book";
import { may } from "../state/session";
import { locale, t } from "../state/words";
import { Chart } from "../ui/chart";
import { confirm } from "../ui/dialog";
import { Badge, Card, Sentence, Waiting } from "../ui/parts";

const KEPT_SECONDS = 180;
type Point = { at: number; remaining: number };

export function OneKey({ limit, parts }: { limit: string; parts: (string | null)[] }) {
    const [state, setState] = useState<KeyState | null>(null);
    const [problem, setProblem] = useState<Problem | null>(null);
    const [points, setPoints] = useState<Point[]>([]);
    const take = (next: KeyState) => {
        setState(next);
        setProblem(null);
        setPoints((old) => {
            const at = Date.now() / 1000;
            return [
                ...old.filter((point) => point.at > at - KEPT_SECONDS),
                { at, remaining: next.remaining },
            ];
        });
    };
    useEffect(() => {
        let over = false;
        let timer = 0;
        const next = async () => {
            if (!document.hidden) {
                try {
                    const answer = await api.key(limit, parts);
                    if (over) return;
                    take(answer);
                } catch (error) {
                    if (over) return;
                    setProblem(asProblem(error));
                }
            }
            timer = window.setTimeout(next, 1000);
        };
        void next();
        return () => {
            over = true;
            window.clearTimeout(timer);
        };
    }, []);
    const name = keyText(parts, t("key.all"), t("key.missing"));
    return (
        <Card
            class="one-key"
            title={
                <>
                    <span class="key-name">{name}</span> <span class="muted">{limit}</span>
                </>
            }
            aside={state && <Badge tone={TONES[state.decision]}>{t(`decision.${state.decision}`)}</Badge>}
        >
            <Sentence problem={problem} />
            {!state && !problem && <Waiting />}
            {state && <Level state={state} />}
            {state && <Past points={points} of={state.of} />}
            {state && <Acts limit={limit} parts={parts} name={name} take={take} />}
        </Card>
    );
}

const TONES = { allow: "passed", wait: "delayed", deny: "refused" } as const;

function Level({ state }: { state: KeyState }) {
    const granted = state.remaining > state.of;
    const beside = state.decision !== "deny" && othersMayRefuse(inForce.value?.rules ?? [], state.limit);
    // Beside a key that passes again, a figure that only fades would seem to say the opposite.
    const facts: [name: string, value: string, note?: string][] = [
        [t("key.used"), rate(state.used_per_second, locale()), t("key.fades")],
        [t("key.refused"), rate(state.refused_per_second, locale()), t("key.fades")],
    ];
    if (state.retry_after_ms !== null) facts.push([t("key.retry"), span(state.retry_after_ms, locale())]);
    if (state.reset_after_ms !== null) facts.push([t("key.reset"), span(state.reset_after_ms, locale())]);
    if (state.decided_by !== "store") facts.push([t("key.decidedBy"), state.decided_by]);
    return (
        <>
            <div class="level">
                <p class="level-value">
                    {whole(state.remaining, locale())}
                    <span class="muted">
                        {" "}
                        {granted ? t("key.left") : t("key.of", { n: whole(state.of, locale()) })}
                    </span>
                </p>
                <meter
                    class={TONES[state.decision]}
                    min={0}
                    max={Math.max(state.of, 1)}
                    value={Math.min(state.remaining, state.of)}
                    aria-label={t("key.remaining")}
                />
            </div>
            {granted && <p class="hint">{t("key.granted", { n: whole(state.of, locale()) })}</p>}
            {beside && <p class="hint">{t("key.beside")}</p>}
            <dl class="facts inline">
                {facts.map(([name, value, note]) => (
                    <div key={name}>
                        <dt>{name}</dt>
                        <dd>
                            {value} {note && <span class="hint">{note}</span>}
                        </dd>
                    </div>
                ))}
            </dl>
        </>
    );
}

function Past({ points, of }: { points: Point[]; of: number }) {
    const now = points.at(-1)?.at ?? 0;
    const data: AlignedData = [points.map((point) => point.at), points.map((point) => point.remaining)];
    const top = Math.max(of, ...points.map((point) => point.remaining), 1);
    return (
        <Chart
            data={data}
            lines={[{ label: t("key.remaining"), tone: "accent", filled: true, stepped: true }]}
            height={150}
            label={t("key.chart", {
                n: whole(points.at(-1)?.remaining ?? 0, locale()),
                of: whole(of, locale()),
            })}
            xRange={[now - Math.max(30, now - (points[0]?.at ?? now)), now]}
            yMax={top * 1.05}
        />
    );
}

function Acts(props: {
    limit: string;
    parts: (string | null)[];
    name: string;
    take: (state: KeyState) => void;
}) {
    const { limit, name } = props;
    const key: KeyName = props.parts.length === 1 && props.parts[0] != null ? props.parts[0] : props.parts;
    const [units, setUnits] = useState(10);
    const [seconds, setSeconds] = useState(60);
    const about = { key: name, limit };
    const allowed = may("operator");
    const ask = (what: "reset" | "grant" | "ban" | "lift", act: () => Promise<KeyState>, n = 0) =>
        confirm({
            title: t(`act.${what}.title`, about),
            text: t(`act.${what}.text`, { ...about, n: whole(n, locale()), span: span(n * 1000, locale()) }),
            yes: t(`act.${what}.yes`),
            tone: what === "ban" ? "bad" : undefined,
            act: async () => props.take(await act()),
        });
    return (
        <fieldset class="key-acts" disabled={!allowed}>
            <legend class="unseen">{t("key.acts")}</legend>
            <form
                class="act"
                onSubmit={(event) => {
                    event.preventDefault();
                    ask("grant", () => api.grant(limit, key, units), units);
                }}
            >
                <label>
                    <span class="unseen">{t("act.grant.units")}</span>
                    <input
                        type="number"
                        min={1}
                        max={1_000_000_000}
                        required
                        value={units}
                        onInput={(event) => setUnits(event.currentTarget.valueAsNumber)}
                    />
                </label>
                <button type="submit" class="button main">
                    {t("act.grant")}
                </button>
            </form>
            <button type="button" class="button" onClick={() => ask("reset", () => api.reset(limit, key))}>
                {t("act.reset")}
            </button>
            <form
                class="act"
                onSubmit={(event) => {
                    event.preventDefault();
                    ask("ban", () => api.ban(limit, key, seconds), seconds);
                }}
            >
                <label>
                    <span class="unseen">{t("act.ban.for")}</span>
                    <select
                        value={String(seconds)}
                        onChange={(event) => setSeconds(Number(event.currentTarget.value))}
                    >
                        {[10, 60, 600, 3600, 86400].map((n) => (
                            <option key={n} value={n}>
                                {span(n * 1000, locale())}
                            </option>
                        ))}
                    </select>
                </label>
                <button type="submit" class="button bad">
                    {t("act.ban")}
                </button>
            </form>
            <button type="button" class="quiet" onClick={() => ask("lift", () => api.ban(limit, key, 0))}>
                {t("act.lift")}
            </button>
            {!allowed && <p class="hint">{t("may.not", { role: t("role.operator") })}</p>}
        </fieldset>
    );
}
