/**
 * A text with numbered lines, light colours and its mistakes in place.
 *
 * It is a plain text area over a picture of the same text, so that everything a keyboard, a phone or a screen reader
 * does with text just works. Tab leaves it.
 */
import { useEffect, useId, useRef } from "preact/hooks";
import type { Mistake } from "../api/types";
import { coloured } from "../logic/yaml";
import { t } from "../state/words";

export function Editor(props: {
    label: string;
    value: string;
    mistakes: Mistake[];
    readOnly?: boolean;
    change?: (value: string) => void;
    /** Ctrl+Enter. */
    done?: () => void;
}) {
    const area = useRef<HTMLTextAreaElement>(null);
    const id = useId();
    const lines = props.value.split("\n");
    const wrong = new Map<number, Mistake[]>();
    for (const mistake of props.mistakes) {
        const line = Math.min(Math.max(1, mistake.line), lines.length);
        wrong.set(line, [...(wrong.get(line) ?? []), mistake]);
    }
    // Grows with its text, up to what the page leaves it.
    useEffect(() => {
        const at = area.current;
        if (!at) return;
        at.style.height = "auto";
        at.style.height = `${at.scrollHeight}px`;
        at.style.width = "100%";
        at.style.width = `${Math.max(at.scrollWidth, at.clientWidth)}px`;
    }, [props.value]);

    const onKeyDown = (event: KeyboardEvent) => {
        if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
            event.preventDefault();
            props.done?.();
            return;
        }
        const at = area.current;
        if (event.key !== "Enter" || event.isComposing || !at || props.readOnly) return;
        // The next line begins where this one did, deeper after a colon.
        const line = at.value.slice(0, at.selectionStart).split("\n").at(-1) ?? "";
        const indent = /^ */.exec(line)?.[0] ?? "";
        const deeper = /:\s*$/.test(line) ? "  " : "";
        if (indent === "" && deeper === "") return;
        event.preventDefault();
        at.setRangeText(`\n${indent}${deeper}`, at.selectionStart, at.selectionEnd, "end");
        props.change?.(at.value);
    };

    return (
        <div class="editor-frame">
            <div class={`editor${props.readOnly ? " read-only" : ""}`}>
                <div class="editor-inner">
                    <ol class="editor-lines" aria-hidden="true">
                        {lines.map((_, i) => (
                            <li key={i} class={wrong.has(i + 1) ? "wrong" : ""}>
                                {i + 1}
                            </li>
                        ))}
                    </ol>
                    <div class="editor-text">
                        <pre aria-hidden="true">
                            {lines.map((line, i) => (
                                <div key={i} class={wrong.has(i + 1) ? "line wrong" : "line"}>
                                    {coloured(line).map((token, j) => (
                                        <span key={j} class={`token-${token.kind}`}>
                                            {token.text}
                                        </span>
                                    ))}
                                    {"\u200b"}
                                </div>
                            ))}
                        </pre>
                        <textarea
                            ref={area}
                            aria-label={props.label}
                            aria-invalid={props.mistakes.length > 0}
                            aria-describedby={props.mistakes.length > 0 ? id : undefined}
                            value={props.value}
                            readOnly={props.readOnly}
                            spellcheck={false}
                            autocomplete="off"
                            autocapitalize="off"
                            wrap="off"
                            rows={1}
                            onInput={(event) => props.change?.(event.currentTarget.value)}
                            onKeyDown={onKeyDown}
                        />
                    </div>
                </div>
            </div>
            <ul class="mistakes" id={id} aria-live="polite">
                {props.mistakes.map((mistake, i) => (
                    <li key={i}>
                        <button type="button" class="quiet" onClick={() => toLine(area.current, mistake)}>
                            {t("editor.line", { line: mistake.line, column: mistake.column })}
                        </button>{" "}
                        {mistake.path && <code>{mistake.path}</code>} {mistake.message}
                    </li>
                ))}
            </ul>
        </div>
    );
}

function toLine(area: HTMLTextAreaElement | null, { line, column }: Mistake): void {
    if (!area) return;
    const before = area.value.split("\n").slice(0, line - 1);
    const at = before.reduce((sum, text) => sum + text.length + 1, 0) + Math.max(0, column - 1);
    area.focus();
    area.setSelectionRange(at, at);
}
