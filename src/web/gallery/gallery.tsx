/** The sections of the component page. */
import { Bot, Ellipsis, GitBranch, Network, Play, Rows3, Trash2 } from 'lucide-react';
import { type ReactNode, useState } from 'react';
import { Button, IconButton } from '../ui/button.tsx';
import { Chip, pillClass } from '../ui/chip.tsx';
import { Dialog } from '../ui/dialog.tsx';
import { DialogForm } from '../ui/dialog-form.tsx';
import { Disclosure } from '../ui/disclosure.tsx';
import { TextField } from '../ui/field.tsx';
import { Kbd } from '../ui/kbd.tsx';
import { Mark, Wordmark } from '../ui/mark.tsx';
import { Menu } from '../ui/menu.tsx';
import { Page } from '../ui/page.tsx';
import { Segmented } from '../ui/segmented.tsx';
import { Select } from '../ui/select.tsx';
import { Empty, Failed, ListNote, Stale } from '../ui/states.tsx';
import { Status } from '../ui/status.tsx';
import { TableHead } from '../ui/table-head.tsx';
import { Tabs } from '../ui/tabs.tsx';

const statuses = [
  'created',
  'ready',
  'running',
  'needs_you',
  'in_review',
  'completed',
  'failed',
  'cancelled',
  'skipped',
];
const tabs = ['conversation', 'output', 'changes', 'timeline', 'events'].map((value) => ({
  value,
  label: value,
}));
const views = [
  { value: 'graph', label: 'Graph' },
  { value: 'table', label: 'Table' },
];

export function Gallery() {
  return (
    <Page>
      <MarkSection />
      <TypeSection />
      <StatusSection />
      <ButtonsSection />
      <FieldsSection />
      <ChoicesSection />
      <TabsSection />
      <DisclosureSection />
      <ListsSection />
      <OverlaysSection />
    </Page>
  );
}

function TypeSection() {
  return (
    <Section title="Type">
      <div className="flex flex-col gap-1">
        <p className="font-semibold text-xl">Entry 24: Run and review coding agents</p>
        <p className="font-semibold text-lg">Page title 18: fix-checkout-race</p>
        <p className="text-prose">Prose 14: The agent changed two files and ran the tests.</p>
        <p>Interface 13: New agent</p>
        <p className="text-muted text-sm">Meta 12: 2 minutes ago</p>
        <p className="font-medium text-muted text-xs">Label 11: Needs you</p>
        <p className="font-mono text-sm">Machine 12: npm run check -- --fix</p>
      </div>
    </Section>
  );
}

function StatusSection() {
  return (
    <Section title="Status">
      {statuses.map((status) => (
        <Status key={status} status={status} />
      ))}
    </Section>
  );
}

function ButtonsSection() {
  return (
    <Section title="Buttons">
      <Button variant="primary" icon={<Play aria-hidden />}>
        Start
      </Button>
      <Button>Plain</Button>
      <Button variant="quiet">Quiet</Button>
      <Button variant="danger" icon={<Trash2 aria-hidden />}>
        Delete
      </Button>
      <Button busy>Saving…</Button>
      <Button disabled>Disabled</Button>
      <IconButton label="Agents" icon={<Bot aria-hidden />} />
    </Section>
  );
}

function FieldsSection() {
  const [name, setName] = useState('fix-checkout-race');
  return (
    <Section title="Fields">
      <TextField label="Name" value={name} onText={setName} hint="Shown in the list" />
      <TextField label="Folder" value="/code" error="/code is not a git repository." mono readOnly />
      <TextField label="Disabled" value="main" disabled readOnly />
    </Section>
  );
}

function ChoicesSection() {
  const [group, setGroup] = useState('repository');
  const [view, setView] = useState('graph');
  return (
    <Section title="Choices">
      <Segmented label="View" segments={views} value={view} onValue={setView} />
      <Segmented
        label="View with icons"
        segments={[
          { value: 'graph', label: <Network aria-label="Graph" /> },
          { value: 'table', label: <Rows3 aria-label="Table" /> },
          { value: 'split', label: 'Split', disabled: 'The window is too narrow' },
        ]}
        value={view}
        onValue={setView}
      />
      <button type="button" aria-pressed className={pillClass(true)}>
        All 17
      </button>
      <button type="button" aria-pressed={false} className={pillClass(false)}>
        Needs you 3
      </button>
      <span className="w-48">
        <Select
          aria-label="Group"
          value={group}
          onChange={setGroup}
          choices={[
            { value: '', label: 'No grouping' },
            { value: 'repository', label: 'By repository', hint: '2 repositories' },
            { value: 'node', label: 'By node', disabled: true },
          ]}
        />
      </span>
      <Chip>demo</Chip>
      <Chip mono title="svc/fix-checkout-race">
        <GitBranch aria-hidden />
        fix-checkout-race
      </Chip>
      <Kbd>⌘</Kbd>
      <Kbd>Esc</Kbd>
    </Section>
  );
}

function TabsSection() {
  const [tab, setTab] = useState('conversation');
  return (
    <Section title="Tabs">
      <div className="w-full">
        <Tabs label="Views" tabs={tabs} value={tab} onValue={setTab}>
          <p className="py-2 text-muted">The panel of {tab}</p>
        </Tabs>
      </div>
    </Section>
  );
}

function DisclosureSection() {
  return (
    <Section title="Disclosure">
      <Disclosure summary="Closed">Content</Disclosure>
      <Disclosure summary="Open" open>
        <p className="p-2">Content</p>
      </Disclosure>
    </Section>
  );
}

function ListsSection() {
  return (
    <Section title="Lists">
      <div className="w-full">
        <Stale since={Date.UTC(2026, 0, 2, 12)} retry={() => {}} />
        <table className="w-full table-fixed">
          <TableHead
            columns={[{ label: 'Agent' }, { label: 'Status' }, { label: 'Actions', unseen: true }]}
          />
          <tbody>
            <tr className="h-9 border-line border-b [&>td]:px-2">
              <td className="pl-4!">fix-checkout-race</td>
              <td>
                <Status status="running" />
              </td>
              <td className="text-right">
                <IconButton label="More" icon={<Ellipsis aria-hidden />} />
              </td>
            </tr>
          </tbody>
        </table>
        <ListNote
          rows={1}
          title="An agent is a program that svc runs in a folder."
          cli="svc agents ls"
          operation="listAgents"
        />
        <Empty
          title="No runs yet. A run is one execution of a team."
          cli="svc runs create team_demo"
          operation="createRun"
        >
          <Button variant="primary">Start run</Button>
        </Empty>
        <Failed error={new Error('The service did not answer.')} retry={() => {}} />
      </div>
    </Section>
  );
}

function OverlaysSection() {
  const [open, setOpen] = useState(false);
  return (
    <Section title="Overlays">
      <Button onClick={() => setOpen(true)}>Open dialog</Button>
      <Dialog
        open={open}
        onClose={() => setOpen(false)}
        title="Delete agent?"
        description="Its output is deleted too."
      >
        <DialogForm
          submit_label="Delete agent"
          variant="danger"
          busy={false}
          onSubmit={() => setOpen(false)}
          onCancel={() => setOpen(false)}
        />
      </Dialog>
      <Menu
        trigger={<Button icon={<Ellipsis aria-hidden />}>Open menu</Button>}
        items={[
          { label: 'Restart', icon: <Play />, onSelect: () => {} },
          { label: 'Not possible', onSelect: () => {}, disabled: true },
          { label: 'Delete', icon: <Trash2 />, onSelect: () => {}, danger: true },
        ]}
      />
    </Section>
  );
}

function MarkSection() {
  return (
    <Section title="Mark">
      <Wordmark />
      <Wordmark waiting />
      <Mark className="size-10" />
    </Section>
  );
}

function Section({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section aria-label={title}>
      <h2 className="border-line border-b pb-1 font-medium text-muted text-xs">{title}</h2>
      <div className="flex flex-wrap items-start gap-3 pt-3">{children}</div>
    </section>
  );
}
