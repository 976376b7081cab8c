/**
 * The sub-agents of a conversation: attributes messages and tool calls to them, and prints a line when a sub-agent
 * starts, changes its state or stops.
 */
import { type Author, readAuthor } from '../../../acp/entries.ts';
import { findReport, type Source, type Subagent, updateSubagents } from '../../../acp/subagents.ts';
import { printable } from '../../../cli/terminal.ts';
import type { TranscriptLayout } from '../../../cli/transcript-layout.ts';
import type { EventRecord } from '../../../core/event.ts';
import { joined } from './acp-lines.ts';
import { keep } from './tool-calls.ts';

/** The sub-agent that sent a message. */
export interface By extends Author {
  /** The name shown to people, in front of every line. */
  label: string;
}

const LABEL_CHARS = 40;
const DEPTH = 8;

export class SubagentLines {
  readonly #page: TranscriptLayout;
  #subagents: Subagent[] = [];
  /** Number of tool calls of each. */
  readonly #calls = new Map<string, number>();
  /** The state that was last shown of each. */
  readonly #shown = new Map<string, string>();

  constructor(page: TranscriptLayout) {
    this.#page = page;
  }

  /** A new session. */
  begin(): void {
    this.#subagents = [];
    this.#calls.clear();
    this.#shown.clear();
  }

  /** Learns about sub-agents from a message of the agent; returns which of them sent it. */
  take(event: EventRecord): By | null {
    const author = readAuthor(event);
    const about = findReport(event.payload);
    const source: Source = author && { id: author.id, by: authorKind(author) };
    this.#subagents = updateSubagents({ acp_session_id: null, subagents: this.#subagents }, source, about);
    if (author === null) return null;
    const { id, unknown_session } = author;
    const calls = this.#calls.get(id) ?? 0;
    keep(this.#calls, id, about.sessionUpdate === 'tool_call' ? calls + 1 : calls);
    const label = unknown_session ? `unknown session ${short(id)}` : this.label(id);
    return { ...author, label };
  }

  /** Lines for changed sub-agents. One that is known only from a tool call is shown once a message from it arrives. */
  changes(): string {
    return this.#subagents.map((subagent) => this.#changes(subagent)).join('');
  }

  /** Its name, preceded by those of its ancestors; `null`: the agent. */
  label(id: string | null): string {
    if (id === null) return 'agent';
    const names: string[] = [];
    for (let at: string | null = id; at !== null && names.length < DEPTH; ) {
      const one = this.#subagents.find((known) => known.id === at);
      names.unshift(short(one?.name ?? `sub-agent ${at}`));
      at = one?.parent_id ?? null;
    }
    return names.join('/');
  }

  /** Sender and recipient of a `session_message`; '' if it does not name them. */
  formatDirection(from: string | null, to: string | null): string {
    return from === null || to === null ? '' : `${this.#party(from)} → ${this.#party(to)}`;
  }

  /** Any other session here is the agent's own. */
  #party(id: string): string {
    return this.label(this.#subagents.some((subagent) => subagent.id === id) ? id : null);
  }

  #changes(one: Subagent): string {
    const { id, has_session, description } = one;
    const calls = this.#calls.get(id);
    if (!has_session && calls === undefined) return '';
    const state = stateText(one);
    const before = this.#shown.get(id);
    if (before === state) return '';
    keep(this.#shown, id, state);
    const worked = calls ? `${calls} tool ${calls === 1 ? 'call' : 'calls'}` : null;
    return this.#page.line(
      'subagent',
      joined(this.label(id), state, worked, before === undefined ? description : null),
      'magenta',
    );
  }
}

function authorKind({ unknown_session, scope }: Author): 'unknown' | 'session' | 'call' {
  if (unknown_session) return 'unknown';
  return scope === '' ? 'call' : 'session';
}

function stateText({ status, stop_reason }: Subagent): string {
  switch (status) {
    case 'running':
      return 'running';
    case 'requires_action':
      return 'needs you';
    case 'unknown':
      return 'state unknown';
    case 'idle':
      return stop_reason === null ? 'idle' : `ended: ${stop_reason}`;
  }
}

function short(text: string): string {
  return printable(text.slice(0, LABEL_CHARS));
}
