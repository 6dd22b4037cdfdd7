/** Links that show one run to people without a key. */
import type { ComponentChildren } from 'preact';
import type { Share } from '../../../contracts/types.js';
import { ApiError } from '../../typescript/index.js';
import { ActionButton } from '../parts/action.js';
import { Notice } from '../parts/notice.js';
import { client, clientOf } from './connection.js';
import { useLoaded } from './loaded.js';
import { AskToReplace, isFree } from './replace-session.js';
import { go, linkTo } from './router.js';
import { me, signIn, signOut } from './session.js';
import { Brand, SkipLink } from './shell.js';

const runOf = ({ job_id }: Share) => linkTo(['runs', job_id]);

/**
 * True if the session of the browser reads the run as well. @throws errors of the client, other than that it does not
 */
async function reads(jobId: string): Promise<boolean> {
  try {
    await client.jobs.get(jobId);
    return true;
  } catch (error) {
    if (error instanceof ApiError && [401, 403, 404].includes(error.status)) return false;
    throw error;
  }
}

/**
 * Opens the run of a link. A session of a key is kept if it reads the run, and else replaced only if the user says so.
 * The token stays in the address until then, because the page may be loaded again.
 */
export function OpenShared({ token }: { token: string }) {
  const enter = async (link: Share) => {
    await signIn({ token });
    go(runOf(link), { replace: true });
  };
  /** Returns the share that the user is asked about, or null. */
  const open = async () => {
    const { share: link } = await clientOf(token).me();
    if (link === null) throw new Error('The link has no token of a shared run.');
    const free = isFree();
    if (!free && !(await reads(link.job_id))) return link;
    if (free) await enter(link);
    else go(runOf(link), { replace: true });
    return null;
  };
  // The session that the link begins does not open it again.
  const { value, fault } = useLoaded(open, [token]);
  const link = value.value;
  return (
    <main class="sign-in">
      <section class="card form">
        <h1>Shared run</h1>
        {fault.value && (
          <>
            <Notice fault={fault.value} />
            {fault.value.code !== 'offline' && <p>Ask the person who sent the link for another one.</p>}
            <a href="#/runs">{me() === null ? 'Sign in' : 'Runs'}</a>
          </>
        )}
        {!fault.value && link === null && <p class="muted">…</p>}
        {link && (
          <AskToReplace
            effect="That account cannot read the run of the link. The link shows that run alone, and signs this browser out."
            label="Open the shared run"
            act={() => enter(link)}
          />
        )}
      </section>
    </main>
  );
}

/** The frame of a shared run: nothing else can be reached from here. */
export function SharedShell({ link, children }: { link: Share; children: ComponentChildren }) {
  return (
    <>
      <SkipLink />
      <header class="bar">
        <span class="brand">
          <Brand />
        </span>
        <p class="shared">
          Shared with you, read only, until{' '}
          <time dateTime={link.expires_at}>{new Date(link.expires_at).toLocaleString()}</time>
          {link.description && <span class="muted"> {link.description}</span>}
        </p>
        <ActionButton label="Leave" kind="quiet" act={() => signOut(false)} />
      </header>
      <main id="main" tabIndex={-1}>
        {children}
      </main>
    </>
  );
}
