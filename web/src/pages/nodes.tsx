/** This node, its store and its upstreams, and the other nodes that follow the same rules. */
import { api } from "../api/calls";
import { moment, span, whole } from "../logic/format";
import { usePolled } from "../state/polled";
import { status, statusProblem } from "../state/status";
import { count, locale, t } from "../state/words";
import { Ago, Badge, Card, Heading, Sentence, Waiting } from "../ui/parts";

/** A node that was not heard for so long is told as silent. */
const SILENT_MS = 30_000;

export function NodesPage() {
    const now = status.value;
    return (
        <>
            <Heading>{t("nav.nodes")}</Heading>
            <Sentence problem={statusProblem.value} />
            {!now && !statusProblem.value && <Waiting />}
            {now && (
                <>
                    <div class="columns">
                        <ThisNode />
                        <Store />
                    </div>
                    <Rules />
                    <Fleet />
                    <div class="columns">
                        <Listeners />
                        <Upstreams />
                    </div>
                </>
            )}
        </>
    );
}

function ThisNode() {
    const now = status.value!;
    return (
        <Card
            title={t("nodes.this")}
            aside={
                <Badge tone={now.ready ? "passed" : "refused"}>{t(now.ready ? "ready" : "ready.not")}</Badge>
            }
        >
            <dl class="facts">
                <dt>{t("nodes.name")}</dt>
                <dd class="mono">{now.node}</dd>
                <dt>{t("nodes.version")}</dt>
                <dd>{now.version}</dd>
                <dt>{t("nodes.up")}</dt>
                <dd title={moment(now.started_ms, locale())}>
                    {span(now.now_ms - now.started_ms, locale())}
                </dd>
            </dl>
            {now.problems.length > 0 && (
                <ul class="plain-list sentence bad">
                    {now.problems.map((problem) => (
                        <li key={problem}>{problem}</li>
                    ))}
                </ul>
            )}
        </Card>
    );
}

function Store() {
    const { store } = status.value!;
    const words: Record<string, [name: string, text: string]> = {
        memory: [t("store.name.memory"), t("store.memory")],
        exact: [t("store.name.exact"), t("store.exact")],
        leased: [t("store.name.leased"), t("store.leased")],
        degraded: [t("store.name.degraded"), t("store.degraded")],
    };
    const [name, text] = words[store.mode] ?? [store.mode, ""];
    return (
        <Card
            title={t("nodes.store")}
            aside={<Badge tone={store.mode === "degraded" ? "refused" : "passed"}>{name}</Badge>}
        >
            <p class="muted">{text}</p>
            <dl class="facts">
                <dt>{t("store.keys")}</dt>
                <dd>{whole(store.keys, locale())}</dd>
                <dt>{t("store.evictions")}</dt>
                <dd>{whole(store.evictions, locale())}</dd>
            </dl>
            {store.last_error && (
                <p class="sentence bad">
                    {t("store.error")} {store.last_error}
                </p>
            )}
        </Card>
    );
}

function Rules() {
    const { rules } = status.value!;
    return (
        <Card title={t("nodes.rules")}>
            <dl class="facts">
                <dt>{t("rules.source")}</dt>
                <dd>
                    {t(`source.${rules.source.kind}`)} <span class="mono">{rules.source.name}</span>
                </dd>
                <dt>{t("rules.revision")}</dt>
                <dd class="mono">{rules.revision}</dd>
                <dt>{t("rules.loaded")}</dt>
                <dd>
                    {moment(rules.loaded_ms, locale())}, {count("rules.times", rules.generation)}
                </dd>
            </dl>
            {rules.source.read_only && <p class="muted">{rules.source.read_only}</p>}
            {rules.failure && (
                <div class="sentence bad">
                    <p>
                        {t("rules.failed", { at: moment(rules.failure.at_ms, locale()) })} {rules.failure.why}
                    </p>
                    <ul class="plain-list">
                        {rules.failure.mistakes.map((mistake, i) => (
                            <li key={i}>
                                {t("editor.line", { line: mistake.line, column: mistake.column })}{" "}
                                <code>{mistake.path}</code> {mistake.message}
                            </li>
                        ))}
                    </ul>
                </div>
            )}
        </Card>
    );
}

function Fleet() {
    const { value, problem } = usePolled(api.nodes, 3000);
    const now = status.value!;
    return (
        <Card title={t("nodes.fleet")}>
            <Sentence problem={problem} />
            {value && value.nodes.length === 0 && <p class="waiting">{t("nodes.alone")}</p>}
            {value && value.nodes.length > 0 && (
                <div class="scroll" tabIndex={0} role="group" aria-label={t("nodes.fleet")}>
                    <table class="table">
                        <thead>
                            <tr>
                                <th scope="col">{t("nodes.name")}</th>
                                <th scope="col">{t("rules.revision")}</th>
                                <th scope="col">{t("nodes.seen")}</th>
                                <th scope="col">{t("nodes.state")}</th>
                            </tr>
                        </thead>
                        <tbody>
                            {value.nodes.map((node) => {
                                const silent = now.now_ms - node.at_ms > SILENT_MS;
                                const behind = node.revision !== now.rules.revision;
                                const tone =
                                    node.failure || silent ? "refused" : behind ? "delayed" : "passed";
                                const word = node.failure
                                    ? "nodes.failed"
                                    : silent
                                      ? "nodes.silent"
                                      : behind
                                        ? "nodes.behind"
                                        : "nodes.current";
                                return (
                                    <tr key={node.node}>
                                        <th scope="row" class="mono">
                                            {node.node}
                                            {node.node === now.node && (
                                                <span class="muted"> {t("nodes.me")}</span>
                                            )}
                                        </th>
                                        <td class="mono">{node.revision}</td>
                                        <td>
                                            <Ago ms={node.at_ms} now={now.now_ms} />
                                        </td>
                                        <td>
                                            <Badge tone={tone}>{t(word)}</Badge> {node.failure}
                                        </td>
                                    </tr>
                                );
                            })}
                        </tbody>
                    </table>
                </div>
            )}
        </Card>
    );
}

function Listeners() {
    const { listeners } = status.value!;
    return (
        <Card title={t("nodes.listeners")}>
            <div class="scroll" tabIndex={0} role="group" aria-label={t("nodes.listeners")}>
                <table class="table">
                    <thead>
                        <tr>
                            <th scope="col">{t("nodes.listener")}</th>
                            <th scope="col">{t("nodes.address")}</th>
                            <th scope="col" class="number">
                                {t("nodes.connections")}
                            </th>
                            <th scope="col" class="number">
                                {t("nodes.inFlight")}
                            </th>
                        </tr>
                    </thead>
                    <tbody>
                        {listeners.map((one) => (
                            <tr key={one.name + one.address}>
                                <th scope="row">{one.name}</th>
                                <td class="mono">{one.address}</td>
                                <td class="number">{figure(one.connections)}</td>
                                <td class="number">{figure(one.in_flight)}</td>
                            </tr>
                        ))}
                    </tbody>
                </table>
            </div>
        </Card>
    );
}

/** Not every listener counts everything. */
function figure(value: number | null | undefined): string {
    return value === null || value === undefined ? "–" : whole(value, locale());
}

function Upstreams() {
    const { upstreams } = status.value!;
    return (
        <Card title={t("nodes.upstreams")}>
            {upstreams.length === 0 && <p class="waiting">{t("nodes.noUpstreams")}</p>}
            <ul class="upstreams">
                {upstreams.map((upstream) => (
                    <li key={upstream.name}>
                        <strong>{upstream.name}</strong>
                        <ul class="plain-list">
                            {upstream.servers.map((server) => (
                                <li key={server.url}>
                                    <Badge tone={server.healthy ? "passed" : "refused"}>
                                        {t(server.healthy ? "healthy" : "healthy.not")}
                                    </Badge>{" "}
                                    <span class="mono">{server.url}</span>
                                    {server.weight !== 1 && <span class="muted"> ×{server.weight}</span>}
                                </li>
                            ))}
                        </ul>
                    </li>
                ))}
            </ul>
        </Card>
    );
}
