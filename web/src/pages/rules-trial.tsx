/** What a draft would have done to the requests that were recorded: counts side by side, and whom it would change. */
import type { Trial, Verdict } from "../api/types";
import { clock, whole } from "../logic/format";
import { count, locale, t } from "../state/words";
import { Badge, Card } from "../ui/parts";

const TONES = { allow: "passed", wait: "delayed", deny: "refused", invalid: "invalid" } as const;

export function TrialView({ trial }: { trial: Trial }) {
    const { recorded, now, draft, differ } = trial;
    if (recorded.requests === 0) {
        return (
            <Card title={t("trial.title")}>
                <p class="waiting">{t("trial.nothing")}</p>
            </Card>
        );
    }
    return (
        <Card title={t("trial.title")}>
            <p class="muted">
                {count("trial.recorded", recorded.requests, {
                    from: clock(recorded.from_ms, locale()),
                    to: clock(recorded.to_ms, locale()),
                })}
            </p>
            <table class="table trial">
                <thead>
                    <tr>
                        <td />
                        <th scope="col" class="number">
                            {t("trial.now")}
                        </th>
                        <th scope="col" class="number">
                            {t("trial.draft")}
                        </th>
                        <th scope="col" class="number">
                            {t("trial.change")}
                        </th>
                    </tr>
                </thead>
                <tbody>
                    {(["passed", "delayed", "refused", "invalid"] as const).map((outcome) => {
                        const change = draft[outcome] - now[outcome];
                        return (
                            <tr key={outcome}>
                                <th scope="row">{t(`outcome.${outcome}`)}</th>
                                <td class="number">{whole(now[outcome], locale())}</td>
                                <td class="number">{whole(draft[outcome], locale())}</td>
                                <td class={`number ${change === 0 ? "none" : ""}`}>
                                    {change > 0 ? "+" : ""}
                                    {whole(change, locale())}
                                </td>
                            </tr>
                        );
                    })}
                </tbody>
            </table>
            {differ.length === 0 ? (
                <p>{t("trial.same")}</p>
            ) : (
                <>
                    <h3>{count("trial.differ", differ.length)}</h3>
                    <div
                        class="scroll"
                        tabIndex={0}
                        role="group"
                        aria-label={count("trial.differ", differ.length)}
                    >
                        <table class="table">
                            <thead>
                                <tr>
                                    <th scope="col">{t("trial.at")}</th>
                                    <th scope="col">{t("trial.request")}</th>
                                    <th scope="col">ip</th>
                                    <th scope="col">{t("trial.now")}</th>
                                    <th scope="col">{t("trial.draft")}</th>
                                </tr>
                            </thead>
                            <tbody>
                                {differ.map((one, i) => (
                                    <tr key={i}>
                                        <td class="muted">{clock(one.at_ms, locale())}</td>
                                        <th scope="row" class="mono">
                                            {one.method} {one.path}
                                        </th>
                                        <td class="mono">{one.ip}</td>
                                        <td>
                                            <Told verdict={one.now} />
                                        </td>
                                        <td>
                                            <Told verdict={one.draft} />
                                        </td>
                                    </tr>
                                ))}
                            </tbody>
                        </table>
                    </div>
                </>
            )}
        </Card>
    );
}

function Told({ verdict }: { verdict: Verdict }) {
    return (
        <>
            <Badge tone={TONES[verdict.decision]}>{t(`outcome.${TONES[verdict.decision]}`)}</Badge>{" "}
            {(verdict.rule ?? verdict.reason) && <span class="muted">{verdict.rule ?? verdict.reason}</span>}
        </>
    );
}
