/** Questions that are answered before anything else: the browser's own dialog, which keeps the focus and gives it back. */
import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { asProblem, type Problem } from "../api/problem";
import { t } from "../state/words";
import { Sentence } from "./parts";

export function Dialog(props: {
    title: string;
    close: () => void;
    children: ComponentChildren;
    class?: string;
}) {
    const dialog = useRef<HTMLDialogElement>(null);
    const id = useId();
    useEffect(() => {
        const before = document.activeElement as HTMLElement | null;
        dialog.current?.showModal();
        return () => before?.focus?.();
    }, []);
    return (
        <dialog
            ref={dialog}
            class={`dialog ${props.class ?? ""}`}
            aria-labelledby={id}
            onCancel={(event) => {
                event.preventDefault();
                props.close();
            }}
            onClick={(event) => {
                if (event.target === dialog.current) props.close();
            }}
        >
            <div class="dialog-body">
                <h2 id={id}>{props.title}</h2>
                {props.children}
            </div>
        </dialog>
    );
}

interface Question {
    title: string;
    text: string;
    yes: string;
    tone?: "bad";
    act: () => Promise<void>;
}
const question = signal<Question | null>(null);

/** Asks before something is done that others would notice. */
export function confirm(asked: Question): void {
    question.value = asked;
}

export function Confirm() {
    const asked = question.value;
    return asked && <Confirming key={asked.title + asked.text} {...asked} />;
}

function Confirming(asked: Question) {
    const [problem, setProblem] = useState<Problem | null>(null);
    const [busy, setBusy] = useState(false);
    const close = () => (question.value = null);
    const yes = async () => {
        setBusy(true);
        setProblem(null);
        try {
            await asked.act();
            close();
        } catch (error) {
            setProblem(asProblem(error));
            setBusy(false);
        }
    };
    return (
        <Dialog title={asked.title} close={close}>
            <p>{asked.text}</p>
            <Sentence problem={problem} />
            <div class="dialog-acts">
                <button type="button" class="button" onClick={close} autofocus>
                    {t("cancel")}
                </button>
                <button type="button" class={`button main ${asked.tone ?? ""}`} disabled={busy} onClick={yes}>
                    {asked.yes}
                </button>
            </div>
        </Dialog>
    );
}
