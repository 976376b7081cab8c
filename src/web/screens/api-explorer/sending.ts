/** Sends one request of the explorer and reads its response. Event streams are shown as they arrive. */
import { useEffect, useRef, useState } from 'react';
import { errorMessage } from '../../api/client.ts';
import { session } from '../../api/session.ts';
import type { Operation } from './description.ts';
import type { Request } from './request.ts';

/** Only the end of a longer response is shown. */
const SHOWN_CHARS_MAX = 256 * 1024;
const DRAW_MS = 100;

export interface Sent {
  state: 'sending' | 'reading' | 'done' | 'stopped' | 'failed';
  ms?: number;
  status?: number;
  status_text?: string;
  headers?: [string, string][];
  text: string;
  truncated?: boolean;
  error?: string;
}

/** `token_override` is used instead of the session's token unless it is empty. */
export function useSending(operation: Operation, token_override: string) {
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
    // Redraw a few times a second at most, and always after the last part.
    const draw = () => {
      drawing ??= setTimeout(() => {
        drawing = null;
        update(shown(text));
      }, DRAW_MS);
    };
    const update = (change: Partial<Sent>) => {
      now = { ...now, ...change };
      if (going.current === stop) setSent(now);
    };
    update({});
    try {
      const own_token = session.get()?.token;
      const token = operation.spec.security?.length === 0 ? undefined : token_override || own_token;
      const started = performance.now();
      const response = await fetch(request.path, {
        method: operation.method,
        headers: { ...request.headers, ...(token !== undefined && { authorization: `Bearer ${token}` }) },
        redirect: 'error',
        signal: stop.signal,
        ...(request.body !== undefined && { body: request.body }),
      });
      update({
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
      update({ state: 'done', ...shown(json ? formatted(text) : text) });
      if (response.ok && token === own_token) updateSession(operation.id, text);
    } catch (error) {
      if (stop.signal.aborted) update({ state: 'stopped', ...shown(text) });
      else update({ state: 'failed', error: errorMessage(error), ...shown(text) });
    } finally {
      if (drawing) clearTimeout(drawing);
    }
  };
  return { sent, send, stop: () => going.current?.abort(), clear: () => setSent(null) };
}

function shown(text: string): { text: string; truncated: boolean } {
  return { text: text.slice(-SHOWN_CHARS_MAX), truncated: text.length > SHOWN_CHARS_MAX };
}

function formatted(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

/** Applies a renewal or a sign-out of the page's own token to its session. */
function updateSession(operation_id: string, text: string): void {
  if (operation_id === 'refreshToken')
    session.renew(JSON.parse(text) as { token: string; expires_in: number });
  if (operation_id === 'logout') session.end();
}
