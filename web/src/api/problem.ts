import type { PieceMistake, Stale } from "./types";

/** Why a question was not answered as hoped. Status 0: nobody answered. */
export class Problem extends Error {
    constructor(
        readonly status: number,
        readonly detail: string,
        readonly mistakes: PieceMistake[] = [],
        readonly stale: Stale[] = [],
        readonly retryAfter: number | null = null,
    ) {
        super(detail);
    }

    get isAway(): boolean {
        return this.status === 0;
    }
}

/** Reads a refusal, whatever it looks like: a proxy in front may answer with a page of its own. */
export async function refusal(response: Response): Promise<Problem> {
    const text = await response.text().catch(() => "");
    const after = Number(response.headers.get("retry-after") ?? Number.NaN);
    const retryAfter = Number.isFinite(after) ? after : null;
    try {
        const body = JSON.parse(text) as Record<string, unknown>;
        const detail =
            typeof body.detail === "string" ? body.detail : String(body.title ?? response.statusText);
        const mistakes = Array.isArray(body.mistakes) ? (body.mistakes as PieceMistake[]) : [];
        const stale = Array.isArray(body.stale) ? (body.stale as Stale[]) : [];
        return new Problem(response.status, detail, mistakes, stale, retryAfter);
    } catch {
        const detail = response.statusText || `HTTP ${response.status}`;
        return new Problem(response.status, detail, [], [], retryAfter);
    }
}

export function asProblem(error: unknown): Problem {
    if (error instanceof Problem) return error;
    return new Problem(0, error instanceof Error ? error.message : String(error));
}
