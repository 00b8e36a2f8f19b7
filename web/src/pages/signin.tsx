import { useState } from "preact/hooks";
import { asProblem, type Problem } from "../api/problem";
import { signIn } from "../state/session";
import { count, t } from "../state/words";
import { Sentence } from "../ui/parts";

/** A token for a session. It is sent once, and kept nowhere here. */
export function SignInPage() {
    const [token, setToken] = useState("");
    const [busy, setBusy] = useState(false);
    const [problem, setProblem] = useState<Problem | null>(null);
    const submit = async (event: Event) => {
        event.preventDefault();
        setBusy(true);
        setProblem(null);
        try {
            await signIn(token.trim());
        } catch (error) {
            setProblem(asProblem(error));
        } finally {
            setBusy(false);
            setToken("");
        }
    };
    return (
        <form class="alone card signin" onSubmit={submit}>
            <h1>{t("signin.title")}</h1>
            <p class="muted">{t("signin.text")}</p>
            <label class="field">
                <span>{t("signin.token")}</span>
                <input
                    type="password"
                    autocomplete="current-password"
                    required
                    autofocus
                    value={token}
                    onInput={(event) => setToken(event.currentTarget.value)}
                />
            </label>
            {problem?.status === 401 ? (
                <p class="sentence bad" role="alert">
                    {t("signin.wrong")}
                </p>
            ) : problem?.status === 429 ? (
                <p class="sentence bad" role="alert">
                    {problem.retryAfter ? count("signin.slow", problem.retryAfter) : t("problem.tooMany")}
                </p>
            ) : (
                <Sentence problem={problem} />
            )}
            <button type="submit" class="button main" disabled={busy || token.trim() === ""}>
                {t("signin.do")}
            </button>
            <p class="hint">{t("signin.hint")}</p>
        </form>
    );
}
