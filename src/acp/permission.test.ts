import { expect, test } from 'vitest';
import { limits as sharedLimits } from '../base/limits.ts';
import { limits } from './limits.ts';
import { readPermission, shortenToolCall } from './permission.ts';
import { readOmittedFields } from './tool-calls.ts';

const allow = { optionId: 'yes', name: 'Yes', kind: 'allow_once' };

test("keeps the agent's wording and order of options", () => {
  const options = [{ optionId: 'b' }, allow, { optionId: '', name: 7, kind: 'never_heard_of' }, allow];
  expect(readPermission({ options, toolCall: { toolCallId: 'c', x: [1] } })).toEqual({
    tool_call: { toolCallId: 'c', x: [1] },
    options: [
      { option_id: 'b', name: 'b', kind: '' },
      { option_id: 'yes', name: 'Yes', kind: 'allow_once' },
      { option_id: '', name: '', kind: 'never_heard_of' },
      { option_id: 'yes', name: 'Yes', kind: 'allow_once' },
    ],
  });
});

test('accepts a request without options, which can only be cancelled', () => {
  expect(readPermission({ options: [] })).toEqual({ tool_call: {}, options: [] });
});

test('rejects a request that nobody could answer', () => {
  const many = Array(limits.review_options_max + 1).fill(allow);
  const long = { optionId: 'x'.repeat(sharedLimits.acp_text_chars_max + 1) };
  for (const params of [null, [], {}, { options: {} }, { options: [null] }, { options: [{ optionId: 7 }] }]) {
    expect(readPermission(params)).toBeNull();
  }
  expect(readPermission({ options: many })).toBeNull();
  expect(readPermission({ options: [allow, { ...allow, kind: 'reject_once' }] })).toBeNull();
  expect(readPermission({ options: [long] })).toBeNull();
  const id = 'x'.repeat(sharedLimits.acp_text_chars_max - 2);
  const large = Array.from({ length: 20 }, (_, n) => ({ optionId: `${id}${n}` }));
  expect(readPermission({ options: large })).toBeNull();
});

test('keeps the parts of an oversized tool call that fit', () => {
  const content = 'x'.repeat(sharedLimits.acp_payload_bytes_max);
  const toolCall = {
    toolCallId: 'c',
    content,
    title: 'Edit',
    rawInput: 'y'.repeat(limits.acp_state_list_chars_max),
  };
  const kept_fields = readPermission({ options: [], toolCall })!.tool_call;
  expect(kept_fields).toMatchObject({ toolCallId: 'c', title: 'Edit' });
  expect(Object.keys(kept_fields)).toEqual(['toolCallId', 'title', '_meta']);
  expect(readOmittedFields(kept_fields)).toEqual(['content', 'rawInput']);
  const many = Object.fromEntries(Array.from({ length: 200_000 }, (_, i) => [`k${i}`, i]));
  const kept = readPermission({ options: [], toolCall: many })!.tool_call;
  expect(JSON.stringify(kept).length).toBeLessThan(2 * limits.acp_state_list_chars_max);
  expect(kept).toMatchObject({ k0: 0, k1: 1 });
});

test('a tool call that is shortened again still names what was left out before', () => {
  const toolCall = {
    toolCallId: 'c',
    content: 'x'.repeat(sharedLimits.acp_payload_bytes_max),
    rawInput: 'y'.repeat(1_000),
    _meta: { theirs: 1, svc: { other: 2 } },
  };
  const once = readPermission({ options: [], toolCall })!.tool_call;
  const twice = shortenToolCall(once, 500);
  expect(twice).toEqual({
    toolCallId: 'c',
    _meta: { theirs: 1, svc: { other: 2, omitted: ['content', 'rawInput'] } },
  });
  expect(shortenToolCall(twice, 500)).toEqual(twice);
  const many = { _meta: { svc: { omitted: Array(50).fill('n'.repeat(200)) } } };
  const names = readOmittedFields(shortenToolCall(many, 20_000));
  expect(names).toHaveLength(limits.omitted_fields_max);
  expect(names[0]).toHaveLength(limits.omitted_field_chars_max);
});
