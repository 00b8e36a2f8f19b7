/** The frame around every page: the gate, where to go, how the connection is, the switch. */
import { KeysPage } from "./pages/keys";
import { NodesPage } from "./pages/nodes";
import { OverviewPage } from "./pages/overview";
import { PlaygroundPage } from "./pages/playground";
import { RulesPage } from "./pages/rules";
import { SignInPage } from "./pages/signin";
import { clock } from "./logic/format";
import { changes, discard } from "./state/book";
import { link, lostSince } from "./state/live";
import { place } from "./state/place";
import { session, sessionProblem, signOut } from "./state/session";
import { helpShown } from "./state/shortcuts";
import { status, turn } from "./state/status";
import { choice, choose } from "./state/theme";
import { language, locale, speak, t } from "./state/words";
import { confirm, Confirm } from "./ui/dialog";
import { Help } from "./ui/help";
import { Gate, KeysIcon, MoreIcon, NodesIcon, OverviewIcon, PlayIcon, RulesIcon } from "./ui/icons";
import { Choice, Heading, Link, Sentence, Switch, Waiting } from "./ui/parts";

const NAV = [
    { path: "/", word: "nav.overview", Icon: OverviewIcon },
    { path: "/rules", word: "nav.rules", Icon: RulesIcon },
    { path: "/keys", word: "nav.keys", Icon: KeysIcon },
    { path: "/playground", word: "nav.playground", Icon: PlayIcon },
    { path: "/nodes", word: "nav.nodes", Icon: NodesIcon },
] as const;

export function App() {
    const here = session.value;
    const path = place.value.path;
    const current = NAV.find(
        (one) => one.path === path || (one.path !== "/" && path.startsWith(`${one.path}/`)),
    );
    document.title = `${current ? t(current.word) : t("nav.lost")} · Tollgate`;
    const enabled = status.value?.enabled ?? true;
    return (
        <>
            <a class="skip" href="#main">
                {t("skip")}
            </a>
            <header class={`top${enabled ? "" : " open"}`}>
                <Link class="brand" href="/" aria-label="Tollgate">
                    <Gate raised={!enabled} />
                    <span>Tollgate</span>
                </Link>
                {here.state === "here" && (
                    <nav class="nav" aria-label={t("nav.label")}>
                        {NAV.map(({ path, word, Icon }) => (
                            <Link
                                key={path}
                                href={path}
                                aria-current={current?.path === path ? "page" : undefined}
                            >
                                <Icon />
                                <span>{t(word)}</span>
                                {path === "/rules" && changes.value.length > 0 && (
                                    <span class="nav-count">{changes.value.length}</span>
                                )}
                            </Link>
                        ))}
                    </nav>
                )}
                <div class="top-end">
                    {here.state === "here" && <LinkState />}
                    {here.state === "here" && status.value && <MainSwitch enabled={enabled} />}
                    <Menu />
                </div>
            </header>
            {here.state === "here" && <Banners />}
            <main id="main">
                {here.state === "unknown" ? (
                    <SignInPage />
                ) : here.state === "asking" ? (
                    <div class="alone">
                        <Sentence problem={sessionProblem.value} />
                        {!sessionProblem.value && <Waiting />}
                    </div>
                ) : (
                    <Page path={path} />
                )}
            </main>
            <Confirm />
            {helpShown.value && <Help />}
        </>
    );
}

function Page({ path }: { path: string }) {
    if (path === "/") return <OverviewPage />;
    if (path === "/rules" || path === "/rules/draft" || path === "/rules/history")
        return <RulesPage path={path} />;
    if (path === "/keys") return <KeysPage />;
    if (path === "/playground") return <PlaygroundPage />;
    if (path === "/nodes") return <NodesPage />;
    return (
        <>
            <Heading>{t("nav.lost")}</Heading>
            <p>
                {t("lost.text")} <Link href="/">{t("nav.overview")}</Link>
            </p>
        </>
    );
}

function LinkState() {
    const state = link.value;
    return (
        <span class={`link ${state}`} role="status" title={t(`link.${state}.text`)}>
            <span class="dot" aria-hidden="true" />
            <span class="link-word">{t(`link.${state}`)}</span>
        </span>
    );
}

function MainSwitch({ enabled }: { enabled: boolean }) {
    const wanted = async (on: boolean) => {
        if (on) return turn(true);
        confirm({
            title: t("switch.off.title"),
            text: t("switch.off.text"),
            yes: t("switch.off.yes"),
            tone: "bad",
            act: () => turn(false),
        });
    };
    return (
        <Switch on={enabled} needs="operator" label={t("switch.label")} turn={wanted}>
            <span class="switch-word">{t(enabled ? "switch.on" : "switch.off")}</span>
        </Switch>
    );
}

function Banners() {
    const enabled = status.value?.enabled ?? true;
    return (
        <>
            {link.value === "lost" && (
                <p class="banner bad" role="alert">
                    {t("link.lost.banner", { since: clock(lostSince.value ?? Date.now(), locale()) })}
                </p>
            )}
            {link.value === "half" && (
                <p class="banner warn" role="status">
                    {t("link.half.text")}
                </p>
            )}
            {!enabled && (
                <p class="banner stripes" role="status">
                    <span>{t("switch.off.banner")}</span>
                </p>
            )}
        </>
    );
}

function Menu() {
    const here = session.value;
    return (
        <>
            <button
                type="button"
                class="quiet menu-button"
                popovertarget="menu"
                aria-label={t("menu")}
                title={t("menu")}
            >
                <MoreIcon />
            </button>
            <div id="menu" class="menu" popover="auto">
                {here.state === "here" && (
                    <p class="menu-who">
                        <strong>{here.me.name}</strong>
                        <span>{t(`role.${here.me.role}`)}</span>
                    </p>
                )}
                <p class="menu-title">{t("menu.language")}</p>
                <Choice
                    label={t("menu.language")}
                    value={language.value}
                    of={[
                        { value: "en", text: "English" },
                        { value: "zh", text: "中文" },
                    ]}
                    choose={speak}
                />
                <p class="menu-title">{t("menu.theme")}</p>
                <Choice
                    label={t("menu.theme")}
                    value={choice.value}
                    of={[
                        { value: "system", text: t("theme.system") },
                        { value: "light", text: t("theme.light") },
                        { value: "dark", text: t("theme.dark") },
                    ]}
                    choose={choose}
                />
                <button
                    type="button"
                    class="menu-item"
                    onClick={() => {
                        document.getElementById("menu")?.hidePopover();
                        helpShown.value = true;
                    }}
                >
                    {t("help.title")} <kbd>?</kbd>
                </button>
                {here.state === "here" && here.me.login && (
                    <button
                        type="button"
                        class="menu-item"
                        onClick={async () => {
                            document.getElementById("menu")?.hidePopover();
                            await signOut();
                            // The next one at this screen has their own work.
                            discard();
                        }}
                    >
                        {t("signout")}
                    </button>
                )}
            </div>
        </>
    );
}
