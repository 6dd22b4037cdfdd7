import type { FunctionComponent } from 'preact';
import { go, linkTo, route } from '../app/router.js';
import { Tabs } from '../parts/tabs.js';
import '../style/admin.css';
import { AuditTab } from './audit-tab.js';
import { KeysTab } from './keys-tab.js';
import { UsageTab } from './usage-tab.js';
import { UsersTab } from './users-tab.js';
import { WebhooksTab } from './webhooks-tab.js';

const TABS: Readonly<Record<string, FunctionComponent>> = {
  keys: KeysTab,
  usage: UsageTab,
  audit: AuditTab,
  webhooks: WebhooksTab,
  users: UsersTab,
};

export function AdminView() {
  const asked = route.value.query.get('tab') ?? '';
  const current = Object.hasOwn(TABS, asked) ? asked : 'keys';
  const Tab = TABS[current] ?? KeysTab;
  return (
    <>
      <h1>Admin</h1>
      <Tabs
        label="Parts of the administration"
        names={Object.keys(TABS)}
        current={current}
        onChoose={(tab) => go(linkTo(['admin'], { tab: tab === 'keys' ? '' : tab }), { replace: true })}
      >
        <Tab />
      </Tabs>
    </>
  );
}
