/** Rules that are kept in one file: what is in force by route, each rule with its switch, and the whole text. */
import { useState } from "preact/hooks";
import type { Problem } from "../api/problem";
import type { RuleInForce } from "../api/types";
import { wishing, without } from "../logic/draft";
import { book, draft, inForce, mistakesIn, shown, stale } from "../state/book";
import { go } from "../state/place";
import { may } from "../state/session";
import { t } from "../state/words";
import { Diff } from "../ui/diff";
import { Editor } from "../ui/editor";
import { Card, Sentence } from "../ui/parts";
import { RuleSwitch, ruleSummary } from "./rules-list";
import { StaleNote } from "./rules-stale";

export function FileView() {
    return (
        <div class="columns rules-columns file">
            <InForce />
            <FileText />
        </div>
    );
}

function InForce() {
    const [problem, setProblem] = useState<Problem | null>(null);
    const rules = inForce.value;
    if (!rules) return null;
    const of = (route: string | null) => rules.rules.filter((rule) => rule.route === route);
    const list = (some: RuleInForce[]) => (
        <ol class="pieces">
            {some.map((rule) => (
                <li key={rule.rule} class={`piece rule${rule.enabled && rule.route_enabled ? "" : " off"}`}>
                    <span class="piece-name">
                        <span>{rule.rule}</span>
                        {!rule.enabled && <span class="badge">{t("off")}</span>}
                        <span class="piece-summary">{ruleSummary(rule)}</span>
                    </span>
                    <span class="piece-acts">
                        <RuleSwitch
                            route={rule.route}
                            rule={rule.rule}
                            on={rule.enabled}
                            onProblem={setProblem}
                        />
                    </span>
                </li>
            ))}
        </ol>
    );
    return (
        <div class="stack rule-list">
            <Sentence problem={problem} />
            {of(null).length > 0 && <Card title={t("everywhere")}>{list(of(null))}</Card>}
            {rules.routes.map((route) => (
                <Card
                    key={route.name}
                    class={route.enabled ? "" : "off"}
                    title={route.name}
                    aside={
                        <span class="muted route-when">
                            {[route.when, route.upstream && `→ ${route.upstream}`].filter(Boolean).join(" ")}
                        </span>
                    }
                >
                    {of(route.name).length === 0 && <p class="waiting">{t("rules.noneHere")}</p>}
                    {list(of(route.name))}
                </Card>
            ))}
            {rules.limits.length > 0 && (
                <Card title={t("rules.limits")}>
                    <ol class="pieces">
                        {rules.limits.map((limit) => (
                            <li key={limit.name} class="piece">
                                <span class="piece-name">
                                    <span>{limit.name}</span>
                                    <span class="piece-summary">
                                        {limit.kind} {limit.summary}
                                    </span>
                                </span>
                            </li>
                        ))}
                    </ol>
                </Card>
            )}
        </div>
    );
}

function FileText() {
    const one = shown.value.find((piece) => piece.kind === "file");
    if (!one?.piece) return null;
    const piece = one.piece;
    const readOnly = !may("admin") || Boolean(book.value?.source.read_only);
    const gone = stale.value[0];
    return (
        <Card
            class="piece-editor"
            title={t("rules.file")}
            aside={
                one.state === "changed" && (
                    <button
                        type="button"
                        class="quiet"
                        onClick={() => (draft.value = without(draft.value, one.id))}
                    >
                        {t("piece.undo")}
                    </button>
                )
            }
        >
            {gone && <StaleNote mine={gone.mine} now={gone.now} />}
            <p class="hint">{t("rules.file.text")}</p>
            <Editor
                label={t("piece.text", { name: one.name })}
                value={one.text}
                mistakes={mistakesIn(one.id)}
                readOnly={readOnly}
                change={(text) => (draft.value = wishing(draft.value, piece, { text }))}
                done={() => go("/rules/draft")}
            />
            {one.text !== piece.text && (
                <details class="differs">
                    <summary>{t("piece.differs")}</summary>
                    <Diff before={piece.text} after={one.text} />
                </details>
            )}
        </Card>
    );
}
