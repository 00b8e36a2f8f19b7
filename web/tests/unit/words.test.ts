import { describe, expect, test } from "vitest";
import { en } from "../../src/words/en";
import { zh } from "../../src/words/zh";

const names = (text: string) => [...text.matchAll(/\{(\w+)\}/g)].map((found) => found[1]).sort();

describe("the dictionaries", () => {
    test("have the same keys", () => {
        expect(Object.keys(zh).sort()).toEqual(Object.keys(en).sort());
    });

    test("say something for every key, with the same gaps to fill", () => {
        for (const key of Object.keys(en) as (keyof typeof en)[]) {
            expect(zh[key].trim(), key).not.toBe("");
            expect(en[key].trim(), key).not.toBe("");
            expect(new Set(names(zh[key])), key).toEqual(new Set(names(en[key])));
        }
    });

    test("have both forms of every word that is counted", () => {
        const keys = new Set(Object.keys(en));
        for (const key of keys) {
            if (key.endsWith(".one")) expect(keys.has(key.replace(/one$/, "other")), key).toBe(true);
        }
    });

    test("have no word that nothing says", async () => {
        const sources = import.meta.glob("../../src/**/*.{ts,tsx}", {
            query: "?raw",
            import: "default",
            eager: true,
        });
        const text = Object.entries(sources)
            .filter(([path]) => !path.includes("/words/"))
            .map(([, source]) => source)
            .join("\n");
        // A key is written out, or is the end of one that is put together: t(`outcome.${outcome}`), count("draft.changes").
        const unused = Object.keys(en).filter((key) => {
            if (text.includes(`"${key}"`)) return false;
            const stem = key.replace(/\.(one|other)$/, "");
            if (text.includes(`"${stem}"`)) return false;
            const parts = key.split(".");
            return !parts.some((_, i) => i > 0 && text.includes(`\`${parts.slice(0, i).join(".")}.\${`));
        });
        expect(unused).toEqual([]);
    });
});
