import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { ActionButton } from '../parts/action.js';
import { Dialog } from '../parts/dialog.js';
import { Menu } from '../parts/menu.js';
import { firstPage, mayOpen, PAGES } from './pages.js';
import { route } from './router.js';
import { session, signOut } from './session.js';
import { SHORTCUTS, useShortcuts } from './shortcuts.js';

export function Shell({ children }: { children: ComponentChildren }) {
  const help = useSignal(false);
  useShortcuts(() => {
    help.value = true;
  });
  const current = route.value.path[0] ?? firstPage();
  return (
    <>
      <SkipLink />
      <header class="bar">
        <a class="brand" href="#/">
          <Brand />
        </a>
        <nav aria-label="Pages">
          {PAGES.filter((page) => page.label !== null && mayOpen(page)).map(({ name, label }) => (
            <a key={name} href={`#/${name}`} aria-current={current === name ? 'page' : undefined}>
              {label}
            </a>
          ))}
          <a href="docs">API</a>
        </nav>
        <Account />
      </header>
      <main id="main" tabIndex={-1}>
        {children}
      </main>
      {help.value && (
        <Dialog title="Keyboard" onClose={() => (help.value = false)}>
          <dl class="keys">
            {SHORTCUTS.map(({ keys, action }) => (
              <div key={keys}>
                <dt>
                  <kbd>{keys}</kbd>
                </dt>
                <dd>{action}</dd>
              </div>
            ))}
          </dl>
        </Dialog>
      )}
    </>
  );
}

/** Goes around the head. */
export const SkipLink = () => (
  <a class="skip" href="#main">
    Skip to the content
  </a>
);

export const Brand = () => (
  <>
    <img src="./icon.svg" alt="" width="22" height="22" />
    zerofleet
  </>
);

function Account() {
  if (session.value.state !== 'in') return null;
  const { api_key, user, project } = session.value.me;
  return (
    <Menu
      class="account"
      label={
        <>
          {user?.name ?? api_key?.name} <span class="muted">{project?.name}</span>
        </>
      }
    >
      <ActionButton label="Sign out" act={() => signOut(false)} />
      <ActionButton label="Sign out everywhere" act={() => signOut(true)} />
    </Menu>
  );
}
