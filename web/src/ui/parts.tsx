/** Small parts that every page uses. */
import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";
import { asProblem, type Problem } from "../api/problem";
import type { Role } from "../api/types";
import { ago, moment } from "../logic/format";
import { follow } from "../state/place";
import { may } from "../state/session";
import { locale, t, type WordKey } from "../state/words";

export function Link(props: JSX.AnchorHTMLAttributes) {
    return <a {...props} onClick={follow} />;
}

/** What went wrong, in a sentence, where it went wrong. */
export function Sentence({ problem }: { problem: Problem | null }) {
    if (!problem) return null;
    return (
        <p class="sentence bad" role="alert">
            {sentenceOf(problem)}
        </p>
    );
}

export function sentenceOf(problem: Problem): string {
    if (problem.isAway) return t("problem.away");
    const lead: Partial<Record<number, WordKey>> = {
        401: "problem.unknown",
        403: "problem.forbidden",
        409: "problem.stale",
        422: "problem.wrong",
        429: "problem.tooMany",
        503: "problem.unavailable",
    };
    const key = lead[problem.status];
    const first = key ? t(key) : t("problem.other", { status: problem.status });
    return problem.detail ? `${first} ${problem.detail}` : first;
}

/** A heading that can be gone to. */
export function Heading({ children, aside }: { children: ComponentChildren; aside?: ComponentChildren }) {
    return (
        <header class="heading">
            <h1 tabIndex={-1}>{children}</h1>
            {aside}
        </header>
    );
}

export function Card(props: {
    title?: ComponentChildren;
    aside?: ComponentChildren;
    class?: string;
    children: ComponentChildren;
}) {
    return (
        <section class={`card ${props.class ?? ""}`}>
            {props.title !== undefined && (
                <header class="card-head">
                    <h2>{props.title}</h2>
                    {props.aside}
                </header>
            )}
            {props.children}
        </section>
    );
}

/** A button for whoever may; for the others it is there, off, and says who may. */
export function Act(props: {
    needs?: Role;
    act: () => Promise<void> | void;
    class?: string;
    disabled?: boolean;
    label?: string;
    onProblem?: (problem: Problem | null) => void;
    children: ComponentChildren;
}) {
    const [busy, setBusy] = useState(false);
    const allowed = !props.needs || may(props.needs);
    const act = async () => {
        setBusy(true);
        props.onProblem?.(null);
        try {
            await props.act();
        } catch (error) {
            props.onProblem?.(asProblem(error));
        } finally {
            setBusy(false);
        }
    };
    return (
        <button
            type="button"
            class={`button ${props.class ?? ""}`}
            disabled={props.disabled || busy || !allowed}
            aria-busy={busy}
            aria-label={props.label}
            title={allowed ? props.label : t("may.not", { role: t(`role.${props.needs ?? "admin"}`) })}
            onClick={act}
        >
            {props.children}
        </button>
    );
}

export function Switch(props: {
    on: boolean;
    needs?: Role;
    label: string;
    turn: (on: boolean) => Promise<void> | void;
    onProblem?: (problem: Problem | null) => void;
    children?: ComponentChildren;
}) {
    const [busy, setBusy] = useState(false);
    const allowed = !props.needs || may(props.needs);
    const turn = async () => {
        setBusy(true);
        props.onProblem?.(null);
        try {
            await props.turn(!props.on);
        } catch (error) {
            props.onProblem?.(asProblem(error));
        } finally {
            setBusy(false);
        }
    };
    return (
        <button
            type="button"
            role="switch"
            class="switch"
            aria-checked={props.on}
            aria-label={props.label}
            disabled={busy || !allowed}
            title={allowed ? props.label : t("may.not", { role: t(`role.${props.needs ?? "operator"}`) })}
            onClick={turn}
        >
            <span class="switch-track" aria-hidden="true" />
            {props.children}
        </button>
    );
}

/** Several of which one is chosen; arrows move, as in any group of radio buttons. */
export function Choice<T extends string>(props: {
    label: string;
    value: T;
    of: readonly { value: T; text: string }[];
    choose: (value: T) => void;
}) {
    return (
        <fieldset class="choice">
            <legend class="unseen">{props.label}</legend>
            {props.of.map(({ value, text }) => (
                <label key={value}>
                    <input
                        type="radio"
                        name={props.label}
                        checked={props.value === value}
                        onChange={() => props.choose(value)}
                    />
                    <span>{text}</span>
                </label>
            ))}
        </fieldset>
    );
}

export function Badge({ tone, children }: { tone: string; children: ComponentChildren }) {
    return <span class={`badge ${tone}`}>{children}</span>;
}

export function Ago({ ms, now }: { ms: number; now: number }) {
    return (
        <time dateTime={new Date(ms).toISOString()} title={moment(ms, locale())}>
            {ago(ms, now, locale())}
        </time>
    );
}

export function Waiting() {
    return <p class="waiting">{t("waiting")}</p>;
}
