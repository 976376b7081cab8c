/** The form for one member and its agent. */
import { useQuery } from '@tanstack/react-query';
import { X } from 'lucide-react';
import { defaultWorktreeMode } from '../../../features/agents/rules.ts';
import { defaultNode } from '../../api/default-node.ts';
import { nodesQuery, presetsQuery } from '../../api/queries.ts';
import { IconButton } from '../../ui/button.tsx';
import { Disclosure } from '../../ui/disclosure.tsx';
import { permissionChoices } from '../../ui/permission-mode.tsx';
import { Select } from '../../ui/select.tsx';
import { at, getText, isObject, type Json, put, renameMember } from './document.ts';
import { DocField, type FormProps } from './form-field.tsx';

const EXTERNAL = 'external';
const COMMAND = 'command';

export function MemberForm({ form, index, alone }: { form: FormProps; index: number; alone: boolean }) {
  const { doc, onChange } = form;
  const path = ['spec', 'members', index] as const;
  const agent = at(doc, [...path, 'agent']);
  const name = getText(doc, [...path, 'member_id']);
  const { data: nodes = [] } = useQuery(nodesQuery);
  const node_id = getText(doc, [...path, 'agent', 'node_id']) || defaultNode(nodes);
  const { data: presets = [] } = useQuery(presetsQuery(node_id));
  const preset = getText(doc, [...path, 'agent', 'preset']);
  const kind = !isObject(agent) ? EXTERNAL : preset || COMMAND;
  const setKind = (next: string) => {
    if (next === EXTERNAL) return onChange(put(doc, [...path, 'agent'], null));
    const before = isObject(agent) ? agent : { worktree_mode: 'create_worktree' };
    const { preset: _, command, argv: __, protocol: ___, ...rest } = before;
    const result: Record<string, Json> =
      next === COMMAND ? { command: command ?? '', ...rest } : { preset: next, ...rest };
    onChange(put(doc, [...path, 'agent'], result));
  };
  const known = presets.filter(({ id }) => id !== 'acp' && id !== 'plain');
  const label = name || `member ${index + 1}`;
  return (
    <fieldset className="flex min-w-0 flex-col gap-2 rounded-md border border-line p-3">
      <legend className="sr-only">{label}</legend>
      <div className="flex items-start gap-2">
        <div className="grid min-w-0 flex-1 gap-2 sm:grid-cols-2">
          <DocField
            form={form}
            path={[...path, 'member_id']}
            label="Member"
            change={(before, text) => renameMember(before, index, text)}
          />
          <DocField form={form} path={[...path, 'agent']} label="Agent">
            {(control) => (
              <Select
                {...control}
                value={kind}
                onChange={setKind}
                choices={[
                  ...known.map(({ id, name: title }) => ({ value: id, label: title })),
                  ...(kind !== EXTERNAL && kind !== COMMAND && !known.some(({ id }) => id === kind)
                    ? [{ value: kind, label: kind }]
                    : []),
                  { value: COMMAND, label: 'Command' },
                  { value: EXTERNAL, label: 'No agent (external member)' },
                ]}
              />
            )}
          </DocField>
        </div>
        <IconButton
          label={`Remove ${label}`}
          icon={<X aria-hidden />}
          disabled={alone}
          onClick={() => onChange(put(doc, path, undefined))}
        />
      </div>
      {kind === COMMAND && (
        <DocField form={form} path={[...path, 'agent', 'command']} label="Command" empty="keep" />
      )}
      <DocField form={form} path={[...path, 'description']} label="Member description" />
      {kind !== EXTERNAL && (
        <Disclosure summary="More">
          <div className="flex flex-col gap-2 pt-1">
            <DocField
              form={form}
              path={[...path, 'prompt']}
              label="Role"
              lines={3}
              hint="Optional. Sent to the agent before its first prompt."
            />
            <div className="grid gap-2 sm:grid-cols-2">
              <DocField form={form} path={[...path, 'agent', 'worktree_mode']} label="Folder">
                {(control) => (
                  <Select
                    {...control}
                    value={
                      getText(doc, [...path, 'agent', 'worktree_mode']) ||
                      defaultWorktreeMode(getText(doc, [...path, 'agent', 'worktree_repo']) || null)
                    }
                    onChange={(value) => onChange(put(doc, [...path, 'agent', 'worktree_mode'], value))}
                    choices={[
                      { value: 'create_worktree', label: 'New worktree for each run' },
                      { value: 'use_existing', label: 'Existing folder' },
                    ]}
                  />
                )}
              </DocField>
              <DocField form={form} path={[...path, 'agent', 'node_id']} label="Node">
                {(control) => (
                  <Select
                    {...control}
                    value={node_id}
                    onChange={(value) => onChange(put(doc, [...path, 'agent', 'node_id'], value))}
                    choices={[
                      ...nodes.map(({ id, name: title }) => ({ value: id, label: title })),
                      ...(nodes.some(({ id }) => id === node_id)
                        ? []
                        : [{ value: node_id, label: nodes.length === 0 ? '…' : `${node_id} (not a node)` }]),
                    ]}
                  />
                )}
              </DocField>
            </div>
            <DocField form={form} path={[...path, 'agent', 'permission_mode']} label="Permissions">
              {(control) => (
                <Select
                  {...control}
                  value={getText(doc, [...path, 'agent', 'permission_mode']) || 'ask'}
                  onChange={(value) => onChange(put(doc, [...path, 'agent', 'permission_mode'], value))}
                  choices={permissionChoices}
                />
              )}
            </DocField>
            <DocField form={form} path={[...path, 'agent', 'workdir']} label="Folder path" />
            <DocField
              form={form}
              path={[...path, 'agent', 'worktree_repo']}
              label="Repository"
              hint="The repository of the worktree."
            />
          </div>
        </Disclosure>
      )}
    </fieldset>
  );
}
