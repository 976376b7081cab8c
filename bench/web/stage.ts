/** The environment for measuring the web UI: a service, a browser, and pages with the probe. */
import { closeSync, openSync, writeSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { Page } from 'playwright-core';
import { transformWithOxc } from 'vite';
import { sleep } from '../../src/base/async.ts';
import type { Agent } from '../../src/features/agents/rules.ts';
import { openBrowser, signIn, type TestBrowser, type WatchedPageOptions } from '../../src/testing/browser.ts';
import type { TestPlane } from '../../src/testing/plane.ts';
import { stdoutOf, withProgram } from '../program.ts';
import type { Probe } from './probed.ts';

/** An element that has not appeared by then is missing, however slow the machine. */
const MISSING_MS = 30_000;
const OUTPUT = 'section[aria-label="Output"]';
const CONVERSATION = '[role="log"][aria-label="Conversation"]';
export const at = { output: OUTPUT, conversation: CONVERSATION } as const;

type StageRequest<K extends keyof Probe> = Awaited<ReturnType<Probe[K]>>;

/** A page in a separate browser context. */
export class OpenPage {
  readonly page: Page;

  constructor(page: Page) {
    this.page = page;
  }

  probe<K extends keyof Probe>(name: K, ...args: Parameters<Probe[K]>): Promise<StageRequest<K>> {
    return this.page.evaluate(`probe.${name}(${args.map((arg) => JSON.stringify(arg)).join(', ')})`);
  }

  async goto(url: string): Promise<void> {
    await this.page.goto(url);
  }

  /** Waits until an element with the text is visible; throws an error that names it if it does not appear. */
  async has(selector: string, text = ''): Promise<void> {
    const place = this.page.locator(selector).filter({ visible: true, hasText: text });
    await place
      .first()
      .waitFor()
      .catch(() => {
        const what = text === '' ? selector : `${selector} with "${text}"`;
        throw new Error(`the page ${this.page.url()} has no ${what}`);
      });
  }

  async close(): Promise<void> {
    await this.page.context().close();
  }
}

export class Stage {
  readonly plane: TestPlane;
  readonly #browser: TestBrowser;
  readonly #probe: string;

  constructor(plane: TestPlane, browser: TestBrowser, probe: string) {
    this.plane = plane;
    this.#browser = browser;
    this.#probe = probe;
  }

  /** Opens an empty page without a session. */
  async open(options?: WatchedPageOptions): Promise<OpenPage> {
    const { page } = await this.#browser.open(this.plane, options);
    page.setDefaultTimeout(MISSING_MS);
    await page.addInitScript({ content: this.#probe });
    return new OpenPage(page);
  }

  /** Like `open`, with root's session stored in the browser. */
  async openSignedIn(options?: WatchedPageOptions): Promise<OpenPage> {
    const seen = await this.open(options);
    await signIn(seen.page, this.plane);
    return seen;
  }

  /** Opens a page of the web UI as root. */
  async ui(path: string): Promise<OpenPage> {
    const seen = await this.openSignedIn();
    await seen.goto(this.plane.url + path);
    return seen;
  }

  /** Opens a page of the same origin that contains only this body. */
  async empty(body = ''): Promise<OpenPage> {
    const seen = await this.open();
    const url = `${this.plane.url}/empty`;
    await seen.page.route(url, (route) =>
      route.fulfill({
        contentType: 'text/html',
        body: `<!doctype html><link rel="icon" href="data:,">${body}`,
      }),
    );
    await seen.goto(url);
    return seen;
  }

  /** Starts an agent that prints one line and keeps running. Bytes written to `output` count as its output. */
  async withOutput(name: string): Promise<{ agent: Agent; output: string }> {
    const command = 'echo ready; exec sleep 100000';
    const { id } = await this.plane.agent(command, { name });
    const agent = await this.plane.until(id, ['running']);
    return { agent, output: stdoutOf(this.plane, agent) };
  }

  /** Starts the demo agent with a silent turn. `toFrame` turns text into an agent message, to be written to `output`. */
  async withConversation(
    name: string,
  ): Promise<{ agent: Agent; output: string; toFrame: (text: string) => string }> {
    const { id } = await this.plane.client.call('createAgent', {
      body: { name, workdir: this.plane.work, preset: 'demo', prompt: '/sleep 600', start: true },
    });
    let session_id = '';
    await this.plane.frames(id, (frames) => {
      const text = JSON.stringify(frames);
      session_id = /\\?"sessionId\\?":\\?"([^"\\]+)/.exec(text)?.[1] ?? '';
      return session_id !== '' && text.includes('night');
    });
    const agent = await this.plane.get(id);
    const toFrame = (text: string) =>
      JSON.stringify({
        jsonrpc: '2.0',
        method: 'session/update',
        params: {
          sessionId: session_id,
          update: {
            sessionUpdate: 'agent_message_chunk',
            messageId: 'bench',
            content: { type: 'text', text },
          },
        },
      });
    return { agent, output: stdoutOf(this.plane, agent), toFrame };
  }
}

/** Runs `fn` with a service and a browser, which end afterwards. */
export async function withStage<T>(
  fn: (stage: Stage) => Promise<T>,
  env: Record<string, string> = {},
): Promise<T> {
  const probe = await probeScript();
  return withProgram(async (plane) => {
    const browser = await openBrowser({ full: true });
    try {
      return await fn(new Stage(plane, browser, probe));
    } finally {
      await browser.close();
    }
  }, env);
}

/** The probe as a plain script, because a page's init script cannot be a module. */
async function probeScript(): Promise<string> {
  const file = new URL('./probe.ts', import.meta.url);
  const { code } = await transformWithOxc(await readFile(file, 'utf8'), file.pathname);
  return `(() => {${code.replace('export {};', '')}})()`;
}

/** Writes lines at a steady rate, until they are all written or `signal` aborts. */
export async function drip(
  output: string,
  lines: Iterable<string>,
  per_s: number,
  signal?: AbortSignal,
): Promise<void> {
  const file = openSync(output, 'w');
  const begun_at = performance.now();
  let written = 0;
  try {
    for (const line of lines) {
      const due_ms = begun_at + (written / per_s) * 1000 - performance.now();
      if (due_ms > 0) await sleep(due_ms, signal);
      if (signal?.aborted) return;
      writeSync(file, `${line}\n`);
      written++;
    }
  } finally {
    closeSync(file);
  }
}
