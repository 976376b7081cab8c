/** What people send to agents: content blocks by ACP's own schema, as the official SDK ships it. Unknown fields pass. */
import schema from '@agentclientprotocol/sdk/schema/v1/schema.json' with { type: 'json' };
import { z } from 'zod';
import type { Capabilities } from './state.ts';

export type ContentBlock = Record<string, unknown> & { type: string };

let block: z.ZodType | undefined;

/** Whether this is a content block of ACP version 1. */
export function isContentBlock(value: unknown): value is ContentBlock {
  block ??= z.fromJSONSchema({ ...schema.$defs.ContentBlock, $defs: schema.$defs } as never);
  return block.safeParse(value).success;
}

/** What every agent takes, and what it has to have said that it does. */
const needs: Record<string, keyof Capabilities> = {
  image: 'image',
  audio: 'audio',
  resource: 'embedded_context',
};

/** The first type of block that the agent does not take; null when it takes all. */
export function unsupportedBlock(blocks: readonly ContentBlock[], capabilities: Capabilities): string | null {
  const found = blocks.find(({ type }) => needs[type] !== undefined && !capabilities[needs[type]]);
  return found?.type ?? null;
}
