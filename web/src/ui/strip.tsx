/** Every arrival a mark, in the row of what became of it; a delayed one with a line to when it went on. */
import { useEffect, useRef } from "preact/hooks";
import type { Arrival } from "../api/types";
import { theme } from "../state/theme";
import { t } from "../state/words";

const ROWS = ["allow", "wait", "deny"] as const;
const TONES = { allow: "passed", wait: "delayed", deny: "refused" } as const;
const ROW = 26;

export function Strip({ arrivals, seconds, label }: { arrivals: Arrival[]; seconds: number; label: string }) {
    const canvas = useRef<HTMLCanvasElement>(null);
    const mode = theme.value;
    useEffect(() => {
        const at = canvas.current;
        if (!at) return;
        const draw = () => paint(at, arrivals, seconds);
        draw();
        const watch = new ResizeObserver(draw);
        watch.observe(at);
        return () => watch.disconnect();
    }, [arrivals, seconds, mode]);
    return (
        <div class="strip">
            <div class="strip-names" aria-hidden="true">
                {ROWS.map((row) => (
                    <span key={row} class={TONES[row]}>
                        {t(`outcome.${TONES[row]}`)}
                    </span>
                ))}
            </div>
            <canvas ref={canvas} role="img" aria-label={label} />
        </div>
    );
}

function paint(at: HTMLCanvasElement, arrivals: Arrival[], seconds: number): void {
    const style = getComputedStyle(document.documentElement);
    const scale = window.devicePixelRatio || 1;
    const width = at.clientWidth;
    at.width = width * scale;
    at.height = ROW * ROWS.length * scale;
    const pen = at.getContext("2d");
    if (!pen) return;
    pen.scale(scale, scale);
    const x = (us: number) => (us / 1e6 / seconds) * (width - 2) + 1;
    pen.fillStyle = style.getPropertyValue("--line");
    for (let row = 1; row < ROWS.length; row++) pen.fillRect(0, row * ROW, width, 1);
    pen.globalAlpha = arrivals.length > 1500 ? 0.45 : 0.85;
    for (const [row, decision] of ROWS.entries()) {
        pen.fillStyle = style.getPropertyValue(`--${TONES[decision]}`);
        for (const arrival of arrivals) {
            if (arrival.decision !== decision) continue;
            pen.fillRect(x(arrival.at_us), row * ROW + 4, 1.25, ROW - 8);
            if (arrival.wait_us > 0) {
                const until = Math.min(width, x(arrival.at_us + arrival.wait_us));
                pen.fillRect(
                    x(arrival.at_us),
                    row * ROW + 4 + ((arrival.at_us / 997) % (ROW - 9)),
                    until - x(arrival.at_us),
                    1,
                );
            }
        }
    }
}
