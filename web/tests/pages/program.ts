/** The real program, started for a test on ports of its own, and ended with it. */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

/** Generous: two busy cores may take their time. */
export const LONG_MS = 60_000;

function binary(): string {
    const folder = process.env.CARGO_TARGET_DIR ?? resolve(import.meta.dirname, "../../../target");
    const path = process.env.TOLLGATE_BIN ?? join(folder, "debug/tollgate");
    if (!existsSync(path)) {
        throw new Error(
            `there is no ${path}: build it with \`cargo build -p tollgate-cli\`, or set TOLLGATE_BIN`,
        );
    }
    return path;
}

export class Program {
    private constructor(
        private child: ChildProcess,
        readonly folder: string,
        readonly addresses: Map<string, string>,
    ) {}

    /** `http://127.0.0.1:port` of the admin listener. */
    get admin(): string {
        return `http://${this.addresses.get("admin")}`;
    }

    get gateway(): string {
        return `http://${this.addresses.get("gateway")}`;
    }

    get file(): string {
        return join(this.folder, "tollgate.yaml");
    }

    rules(): string {
        return readFileSync(this.file, "utf8");
    }

    /** Serves these rules; `listen` has ports of its own unless it is given. */
    static async serve(
        rules: string,
        listen = "{ gateway: 127.0.0.1:0, admin: 127.0.0.1:0 }",
    ): Promise<Program> {
        const folder = mkdtempSync(join(tmpdir(), "tollgate-console-"));
        const text = rules.replaceAll("FOLDER", folder);
        writeFileSync(join(folder, "tollgate.yaml"), `version: 1\nlisten: ${listen}\n${text}`);
        const child = spawn(binary(), ["serve", "--workers", "2", "-c", join(folder, "tollgate.yaml")], {
            stdio: ["ignore", "ignore", "pipe"],
        });
        return Program.opened(child, folder, child.stderr!, /^\s*(\w+)\s+(127\.0\.0\.1:\d+)/);
    }

    /** The demo: a gateway, a service and clients of its own, one of them greedy. */
    static async demo(): Promise<Program> {
        const folder = mkdtempSync(join(tmpdir(), "tollgate-console-"));
        const args = [
            "demo",
            "--plain",
            "--for",
            "10m",
            "--gateway",
            "127.0.0.1:0",
            "--admin",
            "127.0.0.1:0",
        ];
        const child = spawn(binary(), args, {
            stdio: ["ignore", "pipe", "inherit"],
            env: { ...process.env, TMPDIR: folder, NO_COLOR: "1" },
        });
        return Program.opened(child, folder, child.stdout!, /^\s*(\w+)\s+http:\/\/(127\.0\.0\.1:\d+)/);
    }

    private static opened(
        child: ChildProcess,
        folder: string,
        told: NodeJS.ReadableStream,
        line: RegExp,
    ): Promise<Program> {
        const addresses = new Map<string, string>();
        let said = "";
        return new Promise((done, fail) => {
            const timer = setTimeout(
                () => fail(new Error(`it did not open its listeners; it said:\n${said}`)),
                LONG_MS,
            );
            child.on("exit", (status) => fail(new Error(`it ended with ${status}; it said:\n${said}`)));
            told.on("data", (part: Buffer) => {
                said = (said + part.toString()).slice(-20_000);
                for (const text of said.split("\n")) {
                    const found = line.exec(text);
                    if (found) addresses.set(found[1]!, found[2]!);
                }
                if (addresses.has("admin") && addresses.has("gateway")) {
                    clearTimeout(timer);
                    done(new Program(child, folder, addresses));
                }
            });
        });
    }

    async end(): Promise<void> {
        const ended = new Promise((done) => this.child.once("exit", done));
        if (this.child.exitCode === null && this.child.kill("SIGKILL")) await ended;
        rmSync(this.folder, { recursive: true, force: true });
    }

    /** Ends it and leaves its folder, so that another can go on with it. */
    async stop(): Promise<void> {
        const ended = new Promise((done) => this.child.once("exit", done));
        if (this.child.exitCode === null && this.child.kill("SIGKILL")) await ended;
    }

    /** The same file served again, on the same ports. */
    async again(): Promise<Program> {
        const listen = `listen: { gateway: ${this.addresses.get("gateway")}, admin: ${this.addresses.get("admin")} }`;
        writeFileSync(this.file, this.rules().replace(/^listen: .*$/m, listen));
        const child = spawn(binary(), ["serve", "--workers", "2", "-c", this.file], {
            stdio: ["ignore", "ignore", "pipe"],
        });
        return Program.opened(child, this.folder, child.stderr!, /^\s*(\w+)\s+(127\.0\.0\.1:\d+)/);
    }
}

/** Something behind the gateway that answers everything. */
export async function upstream(): Promise<{ address: string; server: Server }> {
    const server = createServer((_, response) => response.end("ok\n"));
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
    const at = server.address();
    if (at === null || typeof at === "string") throw new Error("no port");
    return { address: `127.0.0.1:${at.port}`, server };
}
