/** Asking again and again while somebody looks. */
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { asProblem, type Problem } from "../api/problem";

export interface Polled<T> {
    value: T | null;
    /** Why the last answer did not come; the value is then the one before. */
    problem: Problem | null;
    again: () => void;
}

/** Asks at once, then every so often; not in a hidden tab, and not before the last answer came. */
export function usePolled<T>(
    ask: () => Promise<T>,
    everyMs: number | null,
    about: unknown[] = [],
): Polled<T> {
    const [value, setValue] = useState<T | null>(null);
    const [problem, setProblem] = useState<Problem | null>(null);
    const [round, setRound] = useState(0);
    const latest = useRef(ask);
    latest.current = ask;
    useEffect(() => setValue(null), about);
    useEffect(() => {
        let over = false;
        let timer = 0;
        const next = async () => {
            if (!document.hidden) {
                try {
                    const answer = await latest.current();
                    if (over) return;
                    setValue(answer);
                    setProblem(null);
                } catch (error) {
                    if (over) return;
                    setProblem(asProblem(error));
                }
            }
            if (!over && everyMs !== null) timer = window.setTimeout(next, everyMs);
        };
        void next();
        return () => {
            over = true;
            window.clearTimeout(timer);
        };
    }, [...about, everyMs, round]);
    const again = useCallback(() => setRound((n) => n + 1), []);
    return { value, problem, again };
}
