/** The pieces of the book, by route, in the order in which they apply. */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { api } from "../api/calls";
import type { Problem } from "../api/problem";
import type { PieceKind } from "../api/types";
import { groupOf, nextFresh, type Shown } from "../logic/draft";
import { shifted } from "../logic/order";
import { book, draft, inForce, loadBook, mistakesIn, shown, stale } from "../state/book";
import { go } from "../state/place";
import { may } from "../state/session";
import { t } from "../state/words";
import { DownIcon, UpIcon } from "../ui/icons";
import { Card, Link, Sentence, Switch } from "../ui/parts";

const TEMPLATES: Record<PieceKind, string> = {
    limit: "token_bucket: { rate: 10/s, burst: 20 }\n",
    upstream: 'servers: ["http://127.0.0.1:3000"]\n',
    route: "when: { path: /new/** }\nupstream: NAME\n",
    rule: "limits:\n  - { token_bucket: { rate: 10/s, burst: 20 }, key: [ip] }\nexcess: reject\n",
    file: "",
};

export function RuleList({ chosen }: { chosen: number | null }) {
    const [problem, setProblem] = useState<Problem | null>(null);
    const all = shown.value;
    const of = (kind: PieceKind) => all.filter((one) => one.kind === kind);
    const rulesOf = (route: string | null) => of("rule").filter((one) => one.route === route);
    const rows = (pieces: Shown[], first?: ComponentChildren) => (
        <ol class="pieces">
            {first}
            {pieces.map((one) => (
                <Row
                    key={one.id}
                    one={one}
                    group={pieces}
                    chosen={one.id === chosen}
                    onProblem={setProblem}
                />
            ))}
        </ol>
    );
    return (
        <div class="stack rule-list">
            <Sentence problem={problem} />
            <Card title={t("everywhere")} aside={<Add kind="rule" route={null} />}>
                {rulesOf(null).length === 0 && <p class="waiting">{t("rules.noneEverywhere")}</p>}
                {rows(rulesOf(null))}
            </Card>
            {of("route").map((route) => (
                <Card
                    key={route.id}
                    class={route.enabled ? "" : "off"}
                    title={route.piece?.name ?? route.name}
                    aside={<Add kind="rule" route={route.piece?.name ?? route.name} />}
                >
                    {rows(
                        rulesOf(route.piece?.name ?? route.name),
                        <Row
                            one={route}
                            group={of("route")}
                            chosen={route.id === chosen}
                            onProblem={setProblem}
                        />,
                    )}
                </Card>
            ))}
            <Card title={t("rules.limits")} aside={<Add kind="limit" route={null} />}>
                {rows(of("limit"))}
            </Card>
            <Card title={t("rules.upstreams")} aside={<Add kind="upstream" route={null} />}>
                {rows(of("upstream"))}
            </Card>
            {may("admin") && <Add kind="route" route={null} />}
        </div>
    );
}

function Add({ kind, route }: { kind: PieceKind; route: string | null }) {
    if (!may("admin") || book.value?.source.read_only) return null;
    const add = () => {
        const id = nextFresh(draft.value);
        const taken = new Set(
            shown.value.filter((one) => one.kind === kind && one.route === route).map((one) => one.name),
        );
        let name = `new-${kind}`;
        for (let n = 2; taken.has(name); n++) name = `new-${kind}-${n}`;
        const text = TEMPLATES[kind].replace(
            "NAME",
            shown.value.find((one) => one.kind === "upstream")?.name ?? "app",
        );
        draft.value = {
            ...draft.value,
            fresh: [...draft.value.fresh, { id, kind, route, name, text, enabled: true }],
        };
        go(`/rules?piece=${id}`);
    };
    return (
        <button type="button" class="quiet" onClick={add}>
            + {t(`add.${kind as "rule"}`)}
        </button>
    );
}

function Row(props: {
    one: Shown;
    group: Shown[];
    chosen: boolean;
    onProblem: (problem: Problem | null) => void;
}) {
    const { one, group, chosen } = props;
    const ordered = one.kind === "rule" || one.kind === "route";
    const index = group.findIndex(({ id }) => id === one.id);
    const isMine = may("admin") && !book.value?.source.read_only;
    const shift = (by: -1 | 1) => {
        const order = shifted(
            group.map(({ id }) => id),
            one.id,
            by,
        );
        draft.value = { ...draft.value, orders: { ...draft.value.orders, [groupOf(one)]: order } };
    };
    const onKeyDown = (event: KeyboardEvent) => {
        if (!ordered || !isMine || !event.altKey) return;
        if (event.key === "ArrowUp" || event.key === "ArrowDown") {
            event.preventDefault();
            shift(event.key === "ArrowUp" ? -1 : 1);
            // The row was drawn anew elsewhere; the focus goes along.
            const at = event.currentTarget as HTMLElement;
            requestAnimationFrame(() => at.querySelector<HTMLElement>("a")?.focus());
        }
    };
    const mistakes = mistakesIn(one.id).length;
    const isStale = stale.value.some(({ mine }) => mine.base.id === one.id);
    return (
        <li
            class={`piece ${one.kind}${chosen ? " chosen" : ""}${one.enabled ? "" : " off"}`}
            onKeyDown={onKeyDown}
        >
            <Link
                class="piece-name"
                href={`/rules?piece=${one.id}`}
                aria-current={chosen ? "true" : undefined}
            >
                <span class={one.state === "deleted" ? "struck" : ""}>
                    {one.kind === "route" ? t("rules.route") : one.name}
                </span>
                <Marks one={one} mistakes={mistakes} isStale={isStale} />
                <Summary one={one} />
            </Link>
            <span class="piece-acts">
                {ordered && isMine && group.length > 1 && (
                    <>
                        <button
                            type="button"
                            class="quiet icon-button"
                            disabled={index === 0}
                            aria-label={t("order.up", { name: one.name })}
                            title={t("order.up", { name: one.name })}
                            onClick={() => shift(-1)}
                        >
                            <UpIcon />
                        </button>
                        <button
                            type="button"
                            class="quiet icon-button"
                            disabled={index === group.length - 1}
                            aria-label={t("order.down", { name: one.name })}
                            title={t("order.down", { name: one.name })}
                            onClick={() => shift(1)}
                        >
                            <DownIcon />
                        </button>
                    </>
                )}
                {one.kind === "rule" && one.piece && (
                    <RuleSwitch
                        route={one.route}
                        rule={one.piece.name}
                        on={one.piece.enabled}
                        onProblem={props.onProblem}
                    />
                )}
            </span>
        </li>
    );
}

/** The switch of one rule: at once, not with the draft, for it is for whoever is on call. */
export function RuleSwitch(props: {
    route: string | null;
    rule: string;
    on: boolean;
    onProblem: (problem: Problem | null) => void;
}) {
    const turn = async (on: boolean) => {
        await api.turnRule(props.route, props.rule, on);
        await loadBook();
    };
    const name = props.route === null ? props.rule : `${props.route}/${props.rule}`;
    return (
        <Switch
            on={props.on}
            needs="operator"
            label={t("rule.switch", { name })}
            turn={turn}
            onProblem={props.onProblem}
        />
    );
}

function Marks({ one, mistakes, isStale }: { one: Shown; mistakes: number; isStale: boolean }) {
    return (
        <>
            {isStale && <span class="badge refused">{t("mark.stale")}</span>}
            {mistakes > 0 && <span class="badge refused">{t("mark.wrong")}</span>}
            {one.state !== "as it is" && <span class="badge accent">{t(`mark.${one.state}`)}</span>}
            {!one.enabled && <span class="badge">{t("off")}</span>}
        </>
    );
}

/** What it comes to, as it is in force; a draft says so itself. */
function Summary({ one }: { one: Shown }) {
    const rules = inForce.value;
    const name = one.piece?.name ?? one.name;
    let text = "";
    if (one.kind === "rule") {
        const rule = rules?.rules.find((rule) => rule.route === one.route && rule.rule === name);
        text = rule ? ruleSummary(rule) : "";
    } else if (one.kind === "route") {
        const route = rules?.routes.find((route) => route.name === name);
        text = route ? [route.when, route.upstream && `→ ${route.upstream}`].filter(Boolean).join(" ") : "";
    } else if (one.kind === "limit") {
        const limit = rules?.limits.find((limit) => limit.name === name);
        text = limit ? `${limit.kind} ${limit.summary}` : "";
    }
    return text ? <span class="piece-summary">{text}</span> : null;
}

export function ruleSummary(rule: {
    when: string;
    excess: string;
    limits: { limit: string; kind: string; summary: string; key: string[] }[];
}): string {
    const limits = rule.limits.map(({ kind, summary, key }) => {
        const by = key.length > 0 ? ` ${t("rules.by", { key: key.join(", ") })}` : "";
        return `${kind} ${summary}${by}`;
    });
    return [rule.when, limits.join("; "), rule.excess !== "reject" ? rule.excess : ""]
        .filter(Boolean)
        .join(" · ");
}
