/** Validates the content blocks of prompts against ACP's schema in the official SDK. Unknown fields are allowed. */
import schema from '@agentclientprotocol/sdk/schema/v1/schema.json' with { type: 'json' };
import { z } from 'zod';
import type { Capabilities } from './state.ts';

export type ContentBlock = Record<string, unknown> & { type: string };

let block: z.ZodType | undefined;

/** Whether the value is a content block of ACP version 1. */
export function isContentBlock(value: unknown): value is ContentBlock {
  block ??= z.fromJSONSchema({ ...schema.$defs.ContentBlock, $defs: schema.$defs } as never);
  return block.safeParse(value).success;
}

/** The capability that each type of block needs. Every agent supports the types that are not listed. */
const needs: Record<string, keyof Capabilities> = {
  image: 'image',
  audio: 'audio',
  resource: 'embedded_context',
};

/** The first type of block that the agent does not support; null if it supports all. */
export function unsupportedBlock(blocks: readonly ContentBlock[], capabilities: Capabilities): string | null {
  const found = blocks.find(({ type }) => needs[type] !== undefined && !capabilities[needs[type]]);
  return found?.type ?? null;
}
