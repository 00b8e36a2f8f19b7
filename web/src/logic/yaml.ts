/** Enough of YAML to colour a line: names, comments, texts, numbers. Nothing is decided by it. */

export type Token = { kind: "name" | "comment" | "text" | "number" | "plain"; text: string };

const PIECE =
    /(#.*$)|("(?:[^"\\]|\\.)*"?|'(?:[^']|'')*'?)|([A-Za-z_][\w.-]*)(?=\s*:(?:\s|$))|(?<![\w.-])(\d[\w.%/]*)|([^#"'\w]+|[\w.-]+)/g;

export function coloured(line: string): Token[] {
    const out: Token[] = [];
    let before = "";
    for (const found of line.matchAll(PIECE)) {
        const [text, comment, quoted, name, number] = found;
        // A # begins a comment only after a space.
        const isComment = comment !== undefined && (before === "" || /\s$/.test(before));
        const kind = isComment ? "comment" : quoted ? "text" : name ? "name" : number ? "number" : "plain";
        out.push({ kind, text });
        before += text;
    }
    return before === line ? out : [{ kind: "plain", text: line }];
}
