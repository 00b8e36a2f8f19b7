/** What differs between two texts, line by line: the shortest way by common lines, good for texts of some thousand lines. */

export type DiffLine = {
    kind: "same" | "gone" | "new";
    text: string;
    old: number | null;
    new: number | null;
};
export type DiffPart = DiffLine | { kind: "skipped"; lines: number };

export function diffLines(before: string, after: string): DiffLine[] {
    const a = split(before);
    const b = split(after);
    let start = 0;
    while (start < a.length && start < b.length && a[start] === b[start]) start++;
    let tail = 0;
    while (
        tail < a.length - start &&
        tail < b.length - start &&
        a[a.length - 1 - tail] === b[b.length - 1 - tail]
    ) {
        tail++;
    }
    const out: DiffLine[] = [];
    for (let i = 0; i < start; i++) out.push({ kind: "same", text: a[i]!, old: i + 1, new: i + 1 });
    middle(a, b, start, a.length - tail, b.length - tail, out);
    for (let i = tail; i > 0; i--) {
        const [old, now] = [a.length - i, b.length - i];
        out.push({ kind: "same", text: a[old]!, old: old + 1, new: now + 1 });
    }
    return out;
}

/** Leaves out what is the same, but for a few lines around each difference. */
export function folded(lines: DiffLine[], around = 3): DiffPart[] {
    const near = new Array<boolean>(lines.length).fill(false);
    lines.forEach((line, i) => {
        if (line.kind === "same") return;
        for (let j = Math.max(0, i - around); j <= Math.min(lines.length - 1, i + around); j++)
            near[j] = true;
    });
    const out: DiffPart[] = [];
    let skipped = 0;
    const flush = () => {
        if (skipped > 0) out.push({ kind: "skipped", lines: skipped });
        skipped = 0;
    };
    lines.forEach((line, i) => {
        if (!near[i]) skipped++;
        else {
            flush();
            out.push(line);
        }
    });
    flush();
    return out;
}

/** Beyond this many cells the middle is told as gone and new: a table of all pairs would not fit. */
const CELLS = 4_000_000;

function middle(a: string[], b: string[], start: number, endA: number, endB: number, out: DiffLine[]): void {
    const rows = endA - start;
    const columns = endB - start;
    const gone = (i: number) => out.push({ kind: "gone", text: a[i]!, old: i + 1, new: null });
    const added = (j: number) => out.push({ kind: "new", text: b[j]!, old: null, new: j + 1 });
    if (rows * columns > CELLS) {
        for (let i = start; i < endA; i++) gone(i);
        for (let j = start; j < endB; j++) added(j);
        return;
    }
    const width = columns + 1;
    const common = new Uint32Array((rows + 1) * width);
    for (let i = rows - 1; i >= 0; i--) {
        for (let j = columns - 1; j >= 0; j--) {
            const same = a[start + i] === b[start + j];
            const down = common[(i + 1) * width + j]!;
            const right = common[i * width + j + 1]!;
            common[i * width + j] = same ? common[(i + 1) * width + j + 1]! + 1 : Math.max(down, right);
        }
    }
    let i = 0;
    let j = 0;
    while (i < rows || j < columns) {
        if (i < rows && j < columns && a[start + i] === b[start + j]) {
            out.push({ kind: "same", text: a[start + i]!, old: start + i + 1, new: start + j + 1 });
            i++;
            j++;
        } else if (
            i < rows &&
            (j === columns || common[(i + 1) * width + j]! >= common[i * width + j + 1]!)
        ) {
            gone(start + i++);
        } else {
            added(start + j++);
        }
    }
}

function split(text: string): string[] {
    if (text === "") return [];
    const lines = text.split("\n");
    if (lines.at(-1) === "") lines.pop();
    return lines;
}
