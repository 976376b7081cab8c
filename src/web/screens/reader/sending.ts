/** One request of the reader, from sending to the last byte of its answer. Streams are shown while they come. */
import { useEffect, useRef, useState } from 'react';
import { wordsOf } from '../../api/client.ts';
import { session } from '../../api/session.ts';
import type { Operation } from './description.ts';
import type { Request } from './request.ts';

/** Of a longer answer the end is shown. */
const SHOWN_CHARS_MAX = 256 * 1024;
const DRAW_MS = 100;

export interface Sent {
  state: 'sending' | 'reading' | 'done' | 'stopped' | 'failed';
  ms?: number;
  status?: number;
  status_text?: string;
  headers?: [string, string][];
  text: string;
  cut?: boolean;
  error?: string;
}

export function useSending(operation: Operation) {
  const [sent, setSent] = useState<Sent | null>(null);
  const going = useRef<AbortController | null>(null);
  useEffect(() => () => going.current?.abort(), []);

  const send = async (request: Request) => {
    going.current?.abort();
    const stop = new AbortController();
    going.current = stop;
    let now: Sent = { state: 'sending', text: '' };
    let text = '';
    let drawing: ReturnType<typeof setTimeout> | null = null;
    // A flood is drawn a few times a second, and what came last is always drawn.
    const draw = () => {
      drawing ??= setTimeout(() => {
        drawing = null;
        tell(shown(text));
      }, DRAW_MS);
    };
    const tell = (change: Partial<Sent>) => {
      now = { ...now, ...change };
      if (going.current === stop) setSent(now);
    };
    tell({});
    try {
      const token = operation.spec.security?.length === 0 ? undefined : session.get()?.token;
      const started = performance.now();
      const response = await fetch(request.path, {
        method: operation.method,
        headers: { ...request.headers, ...(token !== undefined && { authorization: `Bearer ${token}` }) },
        redirect: 'error',
        signal: stop.signal,
        ...(request.body !== undefined && { body: request.body }),
      });
      tell({
        state: 'reading',
        ms: Math.round(performance.now() - started),
        status: response.status,
        status_text: response.statusText,
        headers: [...response.headers],
      });
      const decoder = new TextDecoder();
      const reader = response.body?.getReader();
      for (let part = await reader?.read(); part && !part.done; part = await reader?.read()) {
        text += decoder.decode(part.value, { stream: true });
        draw();
        if (text.length > 4 * SHOWN_CHARS_MAX) text = text.slice(-2 * SHOWN_CHARS_MAX);
      }
      const json = response.headers.get('content-type')?.startsWith('application/json');
      tell({ state: 'done', ...shown(json ? laidOut(text) : text) });
      if (response.ok) follow(operation.id, text);
    } catch (error) {
      if (stop.signal.aborted) tell({ state: 'stopped', ...shown(text) });
      else tell({ state: 'failed', error: wordsOf(error), ...shown(text) });
    } finally {
      if (drawing) clearTimeout(drawing);
    }
  };
  return { sent, send, stop: () => going.current?.abort(), clear: () => setSent(null) };
}

function shown(text: string): { text: string; cut: boolean } {
  return { text: text.slice(-SHOWN_CHARS_MAX), cut: text.length > SHOWN_CHARS_MAX };
}

function laidOut(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

/** What was done to the token of this page, the page goes along with. */
function follow(operation_id: string, text: string): void {
  if (operation_id === 'refreshToken')
    session.renew(JSON.parse(text) as { token: string; expires_in: number });
  if (operation_id === 'logout') session.end();
}
