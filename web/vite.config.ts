import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";
import { standIn } from "./dev/standin.ts";

/** Sweeps `dist` before a build and leaves the file that keeps the folder in git: cargo watches the folder. */
function sweep(): Plugin {
    return {
        name: "sweep",
        apply: "build",
        buildStart() {
            for (const name of readdirSync("dist")) {
                if (name !== ".gitignore") rmSync(join("dist", name), { recursive: true });
            }
        },
    };
}

/** Writes `name.gz` beside every file, so that the server compresses nothing. */
function compressed(): Plugin {
    return {
        name: "compressed",
        apply: "build",
        closeBundle() {
            let total = 0;
            for (const entry of readdirSync("dist", { recursive: true, withFileTypes: true })) {
                if (!entry.isFile() || !/\.(html|js|css|svg)$/.test(entry.name)) continue;
                const path = join(entry.parentPath, entry.name);
                const packed = gzipSync(readFileSync(path), { level: 9 });
                writeFileSync(`${path}.gz`, packed);
                total += packed.length;
            }
            console.log(`the console is ${(total / 1000).toFixed(1)} kB, gzipped`);
        },
    };
}

export default defineConfig({
    plugins: [standIn(), sweep(), compressed()],
    build: {
        emptyOutDir: false,
        // An image as a data: address is against the content security policy.
        assetsInlineLimit: 0,
        target: "es2022",
        modulePreload: { polyfill: false },
    },
    test: {
        projects: [
            { extends: true, test: { name: "unit", include: ["tests/unit/**/*.test.ts"] } },
            {
                extends: true,
                test: {
                    name: "pages",
                    include: ["tests/pages/**/*.test.ts"],
                    // A loaded machine may take its time; every wait inside has a condition.
                    testTimeout: 120_000,
                    hookTimeout: 120_000,
                    fileParallelism: false,
                },
            },
        ],
    },
});
