/** Settings of the account and the browser and, for root, of the service. Each tab has a URL. */
import { Link, useParams } from '@tanstack/react-router';
import { LogOut } from 'lucide-react';
import type { ComponentType } from 'react';
import { useSession } from '../../api/session.ts';
import { features } from '../../features.ts';
import { KeySheet } from '../../shell/key-sheet.tsx';
import { Page } from '../../ui/page.tsx';
import { Screen } from '../../ui/screen.tsx';
import { Failed } from '../../ui/states.tsx';
import { tabClass } from '../../ui/tab-class.ts';
import { TabNav } from '../../ui/tab-nav.tsx';
import { Account } from './account.tsx';
import { AppearanceSettings, ShortcutSwitch } from './appearance.tsx';
import { Config } from './config.tsx';
import { Devices } from './devices.tsx';
import { Notifications } from './notifications.tsx';
import { SignOut } from './sign-out.tsx';
import { Tokens } from './tokens.tsx';

interface Tab {
  label: string;
  /** Null if it is not loaded yet. */
  view: () => ComponentType | null;
  root?: true;
}

const feature_tabs = Object.fromEntries(
  features.flatMap(({ settings = {} }) =>
    Object.entries(settings).map(([name, { label, part }]) => [name, { label, view: part.view }]),
  ),
);

const tabs: Record<string, Tab> = {
  account: { label: 'Account', view: () => Account },
  ...feature_tabs,
  tokens: { label: 'API tokens', view: () => Tokens },
  devices: { label: 'Devices', view: () => Devices },
  notifications: { label: 'Notifications', view: () => Notifications },
  appearance: { label: 'Appearance', view: () => AppearanceSettings },
  shortcuts: { label: 'Shortcuts', view: () => Shortcuts },
  config: { label: 'Configuration', view: () => Config, root: true },
};

export function Settings() {
  const { tab } = useParams({ from: '/app/settings/$tab' });
  const root = useSession()?.user.role === 'root';
  const shown = Object.hasOwn(tabs, tab) ? tabs[tab] : undefined;
  const View = shown?.view();
  return (
    <Screen
      title={shown ? `Settings: ${shown.label}` : 'Settings'}
      heading="Settings"
      actions={<SignOut icon={<LogOut aria-hidden />} />}
      toolbar={
        <TabNav label="Settings" className="-mb-2 w-full border-b-0">
          {Object.entries(tabs)
            .filter(([, each]) => root || !each.root)
            .map(([name, { label }]) => (
              <Link key={name} to="/settings/$tab" params={{ tab: name }} className={tabClass}>
                {label}
              </Link>
            ))}
        </TabNav>
      }
    >
      <Page>
        {!shown && <Failed error={new Error('This page does not exist.')} />}
        {shown?.root && !root && <Failed error={new Error('root required')} />}
        {View && (root || !shown?.root) && <View />}
      </Page>
    </Screen>
  );
}

function Shortcuts() {
  return (
    <>
      <ShortcutSwitch />
      <KeySheet />
    </>
  );
}
