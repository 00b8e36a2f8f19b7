import { render } from "preact";
import { App } from "./app";
import { startChecking } from "./state/book";
import { startLive } from "./state/live";
import { meet } from "./state/session";
import { startShortcuts } from "./state/shortcuts";
import { startStatus } from "./state/status";
import "./styles/base.css";
import "./styles/parts.css";
import "./styles/rules.css";
import "./styles/pages.css";

startLive();
startStatus();
startChecking();
startShortcuts();
void meet();

const at = document.getElementById("console");
if (at) render(<App />, at);
