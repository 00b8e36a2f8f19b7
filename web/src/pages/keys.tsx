/** Whom it concerns: the busiest keys, and any one by its name. */
import { useState } from "preact/hooks";
import { api, keyFromQuery, keyQuery } from "../api/calls";
import type { HeavyKey } from "../api/types";
import { keyText, rate } from "../logic/format";
import { inForce, loadBook } from "../state/book";
import { told } from "../state/live";
import { go, place } from "../state/place";
import { usePolled } from "../state/polled";
import { locale, t } from "../state/words";
import { Card, Choice, Heading, Link, Sentence, Waiting } from "../ui/parts";
import { OneKey } from "./key";
import { useEffect } from "preact/hooks";

const SHOWN = 20;

export function KeysPage() {
    const asked = keyFromQuery(place.value.query);
    useEffect(() => void loadBook(), [told.value]);
    const top = usePolled(() => api.top(SHOWN), 2000);
    const name = asked && keyQuery(asked.limit, asked.key);
    return (
        <>
            <Heading>{t("nav.keys")}</Heading>
            <div class="columns keys-columns">
                <div class="stack">
                    <LookUp key={name ?? ""} asked={asked} />
                    {asked && <OneKey key={name} limit={asked.limit} parts={asked.key} />}
                </div>
                <div class="stack">
                    <Sentence problem={top.problem} />
                    {!top.value && !top.problem && <Waiting />}
                    {top.value && <Heavy top={top.value.limited} word="limited" chosen={name} />}
                    {top.value && <Heavy top={top.value.used} word="used" chosen={name} />}
                    <p class="hint">{t("keys.halfLife")}</p>
                </div>
            </div>
        </>
    );
}

function Heavy({ top, word, chosen }: { top: HeavyKey[]; word: "limited" | "used"; chosen: string | null }) {
    const [all, setAll] = useState(false);
    const figure = (one: HeavyKey) => (word === "limited" ? one.refused_per_second : one.used_per_second);
    const most = Math.max(0.001, ...top.map(figure));
    const shown = all ? top : top.slice(0, 8);
    return (
        <Card
            title={t(`keys.${word}`)}
            aside={
                top.length > 8 && (
                    <Choice
                        label={t("keys.howMany", { of: t(`keys.${word}`) })}
                        value={all ? "all" : "few"}
                        of={[
                            { value: "few", text: "8" },
                            { value: "all", text: String(top.length) },
                        ]}
                        choose={(value) => setAll(value === "all")}
                    />
                )
            }
        >
            {top.length === 0 && <p class="waiting">{t(`keys.${word}.none`)}</p>}
            {shown.length > 0 && (
                <table class="table heavy">
                    <thead>
                        <tr>
                            <th scope="col">{t("key")}</th>
                            <th scope="col">{t("limit")}</th>
                            <th scope="col" class="number">
                                {t(`keys.${word}.figure`)}
                            </th>
                        </tr>
                    </thead>
                    <tbody>
                        {shown.map((one) => {
                            const parts = typeof one.key === "string" ? [one.key] : (one.key ?? []);
                            const query = keyQuery(one.limit, parts);
                            const text = keyText(parts, t("key.all"), t("key.missing"));
                            return (
                                <tr key={query} class={query === chosen ? "chosen" : ""}>
                                    <th scope="row">
                                        {one.key_cut ? (
                                            <span class="key-name" title={t("key.cut")}>
                                                {text}…
                                            </span>
                                        ) : (
                                            <Link href={`/keys?${query}`} class="key-name">
                                                {text}
                                            </Link>
                                        )}
                                    </th>
                                    <td class="muted">{one.limit}</td>
                                    <td class="number">
                                        <span
                                            class={`bar ${word}`}
                                            style={{ "--share": String(figure(one) / most) }}
                                            aria-hidden="true"
                                        />
                                        {rate(figure(one), locale())}
                                    </td>
                                </tr>
                            );
                        })}
                    </tbody>
                </table>
            )}
        </Card>
    );
}

type Part = { text: string; missing: boolean };

function LookUp({ asked }: { asked: { limit: string; key: (string | null)[] } | null }) {
    const [limit, setLimit] = useState(asked?.limit ?? "");
    const first = asked?.key.map((part): Part => ({ text: part ?? "", missing: part === null }));
    const [parts, setParts] = useState<Part[]>(first ?? [{ text: "", missing: false }]);
    const known = knownLimits();
    const attributes = known.get(limit);
    const choose = (next: string) => {
        setLimit(next);
        // A rule says what its keys are made of; then so many parts are asked for.
        const made = known.get(next);
        if (made && made.length !== parts.length) {
            setParts(made.map((_, i) => parts[i] ?? { text: "", missing: false }));
        }
    };
    const set = (index: number, part: Partial<Part>) =>
        setParts(parts.map((old, i) => (i === index ? { ...old, ...part } : old)));
    const submit = (event: Event) => {
        event.preventDefault();
        if (limit)
            go(
                `/keys?${keyQuery(
                    limit,
                    parts.map((part) => (part.missing ? null : part.text)),
                )}`,
            );
    };
    return (
        <Card title={t("keys.lookup")}>
            <form class="lookup" onSubmit={submit}>
                <label class="field">
                    <span>{t("limit")}</span>
                    <input
                        data-find
                        list="known-limits"
                        required
                        autocomplete="off"
                        spellcheck={false}
                        value={limit}
                        onInput={(event) => choose(event.currentTarget.value)}
                    />
                    <datalist id="known-limits">
                        {[...known.keys()].map((name) => (
                            <option key={name} value={name} />
                        ))}
                    </datalist>
                </label>
                {parts.map((part, index) => (
                    <div class="field key-part" key={index}>
                        <label>
                            <span>
                                {attributes?.[index] ??
                                    (parts.length > 1 ? t("key.part", { n: index + 1 }) : t("key"))}
                            </span>
                            <input
                                autocomplete="off"
                                spellcheck={false}
                                disabled={part.missing}
                                value={part.text}
                                onInput={(event) => set(index, { text: event.currentTarget.value })}
                            />
                        </label>
                        <label class="check">
                            <input
                                type="checkbox"
                                checked={part.missing}
                                onChange={(event) => set(index, { missing: event.currentTarget.checked })}
                            />
                            {t("key.missing.check")}
                        </label>
                    </div>
                ))}
                <p class="hint">
                    {parts.length === 0 && <>{t("key.all.text")} </>}
                    {t("key.part.text")}
                    {parts.some((part) => part.missing) && <> {t("key.missing.text")}</>}
                </p>
                <div class="acts">
                    <button type="submit" class="button main">
                        {t("keys.lookup.do")}
                    </button>
                    <button
                        type="button"
                        class="quiet"
                        onClick={() => setParts([...parts, { text: "", missing: false }])}
                    >
                        {t("key.part.add")}
                    </button>
                    {parts.length > 0 && (
                        <button type="button" class="quiet" onClick={() => setParts(parts.slice(0, -1))}>
                            {t("key.part.less")}
                        </button>
                    )}
                </div>
            </form>
        </Card>
    );
}

/** The limits that can be asked for, with what their keys are made of where a rule says so. */
function knownLimits(): Map<string, string[] | undefined> {
    const known = new Map<string, string[] | undefined>();
    for (const limit of inForce.value?.limits ?? []) known.set(limit.name, undefined);
    for (const rule of inForce.value?.rules ?? []) {
        for (const limit of rule.limits) if (limit.kind !== "bandwidth") known.set(limit.limit, limit.key);
    }
    return known;
}
