/** Who was refused just now, newest first, each a step from its key. */
import { useState } from "preact/hooks";
import { keyQuery } from "../api/calls";
import { clock, keyText } from "../logic/format";
import { nameOf } from "../logic/traffic";
import { leftOut, refusals } from "../state/live";
import { count, locale, t } from "../state/words";
import { Card, Link } from "../ui/parts";

const SHOWN = 14;

export function Refused() {
    const [held, setHeld] = useState<typeof refusals.value | null>(null);
    const shown = (held ?? refusals.value).slice(0, SHOWN);
    return (
        <Card
            title={t("refused.title")}
            aside={
                <button
                    type="button"
                    class="quiet"
                    aria-pressed={held !== null}
                    onClick={() => setHeld(held ? null : refusals.value)}
                >
                    {t(held ? "refused.go" : "refused.hold")}
                </button>
            }
        >
            {shown.length === 0 ? (
                <p class="waiting">{t("refused.none")}</p>
            ) : (
                <ul class="refused-list">
                    {shown.map((one) => (
                        <li key={one.number}>
                            <time class="muted">{clock(one.at_ms, locale())}</time>
                            <span class="refused-what">
                                {one.limit !== null && (
                                    <Link href={`/keys?${keyQuery(one.limit, one.key)}`} class="key-name">
                                        {keyText(one.key, t("key.all"), t("key.missing"))}
                                    </Link>
                                )}
                                <span class="muted">
                                    {" "}
                                    {nameOf({ ...one, limit: one.limit ?? undefined })}
                                    {one.path ? ` · ${one.method ?? ""} ${one.path}` : ""}
                                </span>
                            </span>
                        </li>
                    ))}
                </ul>
            )}
            {leftOut.value > 0 && <p class="muted">{count("refused.more", leftOut.value)}</p>}
        </Card>
    );
}
