/** uPlot in a component: follows its box, the theme and new data. Colours are the page's own. */
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { amount, clock, clockShort, rate } from "../logic/format";
import { theme } from "../state/theme";
import { language, locale } from "../state/words";

export interface Line {
    label: string;
    /** A colour of the page: `passed` is `--passed`. */
    tone: string;
    filled?: boolean;
    stepped?: boolean;
    /** What is told for a point, where it is not what is drawn. */
    told?: (index: number) => number | null;
}

export function Chart(props: {
    data: uPlot.AlignedData;
    lines: Line[];
    height: number;
    label: string;
    /** x is a moment, or seconds from the start. */
    x?: "moment" | "seconds";
    xRange?: [number, number];
    yMax?: number;
    paths?: "bars";
}) {
    const box = useRef<HTMLDivElement>(null);
    const plot = useRef<uPlot | null>(null);
    const now = useRef(props);
    now.current = props;
    const shape = `${theme.value} ${language.value} ${props.lines.map((line) => line.label + line.tone).join()} ${props.height} ${props.paths}`;

    useEffect(() => {
        const at = box.current;
        if (!at) return;
        const made = new uPlot(options(at, now), now.current.data, at);
        plot.current = made;
        const watch = new ResizeObserver(() => {
            if (at.clientWidth > 0 && at.clientWidth !== made.width) {
                made.setSize({ width: at.clientWidth, height: now.current.height });
            }
        });
        watch.observe(at);
        return () => {
            watch.disconnect();
            made.destroy();
            plot.current = null;
        };
    }, [shape]);
    useEffect(() => plot.current?.setData(props.data), [props.data]);

    return <div class="chart" ref={box} role="img" aria-label={props.label} />;
}

function options(at: HTMLElement, now: { current: Parameters<typeof Chart>[0] }): uPlot.Options {
    const style = getComputedStyle(document.documentElement);
    const colour = (name: string) => style.getPropertyValue(`--${name}`).trim();
    const { lines, height, x = "moment", paths } = now.current;
    const font = `11px ${getComputedStyle(document.body).fontFamily}`;
    const axis = {
        stroke: colour("muted"),
        font,
        ticks: { show: false },
        grid: { stroke: colour("line"), width: 1 },
    };
    const time = (value: number, long: boolean) =>
        x === "seconds"
            ? `${amount(value, locale())} s`
            : (long ? clock : clockShort)(value * 1000, locale());
    return {
        width: Math.max(at.clientWidth, 100),
        height,
        padding: [8, 26, 0, 0],
        cursor: { y: false, points: { size: 6 }, drag: { x: false, y: false } },
        legend: { live: true },
        scales: {
            x: { time: false, range: (_, min, max) => now.current.xRange ?? [min, max] },
            y: { range: (_, __, max) => [0, now.current.yMax ?? nice(max)] },
        },
        axes: [
            {
                ...axis,
                grid: { show: false },
                size: 24,
                space: 70,
                incrs:
                    x === "moment"
                        ? [1, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400]
                        : undefined,
                values: (_, splits, __, ___, step) => splits.map((split) => time(split, step < 60)),
            },
            {
                ...axis,
                size: 44,
                space: 28,
                values: (_, splits) => splits.map((split) => amount(split, locale())),
            },
        ],
        series: [
            {
                label: "\u00a0",
                value: (_, value) => (value === null || value === undefined ? "" : time(value, true)),
            },
            ...lines.map((line, index): uPlot.Series => ({
                label: line.label,
                stroke: colour(line.tone),
                width: paths === "bars" ? 0 : 1.25,
                points: { show: false },
                fill: line.filled ? colour(`${line.tone}-fill`) : undefined,
                paths:
                    paths === "bars"
                        ? uPlot.paths.bars?.({ size: [0.92, 40], gap: 0 })
                        : line.stepped
                          ? uPlot.paths.stepped?.({ align: 1 })
                          : undefined,
                value: (_, value, __, at) => {
                    if (at === null || at === undefined) return "";
                    const told = now.current.lines[index]?.told?.(at) ?? value;
                    return told === undefined || told === null ? "" : rate(told, locale());
                },
            })),
        ],
    };
}

/** A top for the scale that does not jump with every point. */
function nice(max: number): number {
    if (!(max > 0)) return 1;
    const power = 10 ** Math.floor(Math.log10(max * 1.05));
    for (const step of [1, 1.5, 2, 3, 4, 5, 6, 8, 10]) if (max * 1.05 <= step * power) return step * power;
    return max;
}

/** One row of numbers as a line: for tables, where words and figures beside it say the same. */
export function Spark({ values, tone, max }: { values: number[]; tone: string; max: number }) {
    const width = 90;
    const height = 20;
    const step = width / Math.max(1, values.length - 1);
    const y = (value: number) => height - 1 - (Math.min(value, max) / Math.max(max, 1)) * (height - 3);
    const path = values
        .map((value, i) => `${i ? "L" : "M"}${(i * step).toFixed(1)} ${y(value).toFixed(1)}`)
        .join("");
    return (
        <svg
            class={`spark ${tone}`}
            viewBox={`0 0 ${width} ${height}`}
            preserveAspectRatio="none"
            aria-hidden="true"
        >
            <path d={path} />
        </svg>
    );
}
