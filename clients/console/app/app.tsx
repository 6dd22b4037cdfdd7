import type { FunctionComponent } from 'preact';
import { Suspense } from 'preact/compat';
import { useEffect } from 'preact/hooks';
import type { Scope } from '../../../contracts/types.js';
import { Empty } from '../parts/empty.js';
import { Notice } from '../parts/notice.js';
import { RunView } from '../run/run-view.js';
import { RunsView } from '../runs/runs-view.js';
import { lazily } from './lazily.js';
import { useLoaded } from './loaded.js';
import { firstPage, mayOpen, PAGES } from './pages.js';
import { followAddress, route } from './router.js';
import { readSession, session, share } from './session.js';
import { OpenShared, SharedShell } from './shared.js';
import { Shell } from './shell.js';
import { SignIn } from './sign-in.js';
import { setTitle } from './title.js';

const CompareView = lazily(() => import('../runs/compare-view.js').then((module) => module.CompareView));
const SweepsView = lazily(() => import('../sweeps/sweeps-view.js').then((module) => module.SweepsView));
const SweepView = lazily(() => import('../sweeps/sweep-view.js').then((module) => module.SweepView));
const FleetView = lazily(() => import('../fleet/fleet-view.js').then((module) => module.FleetView));
const data = () => import('../data/datasets-view.js');
const DatasetsView = lazily(() => data().then((module) => module.DatasetsView));
const DatasetView = lazily(() => data().then((module) => module.DatasetView));
const models = () => import('../data/models-view.js');
const ModelsView = lazily(() => models().then((module) => module.ModelsView));
const ModelView = lazily(() => models().then((module) => module.ModelView));
const NewView = lazily(() => import('../new/new-view.js').then((module) => module.NewView));
const Playground = lazily(() => import('../playground/playground.js').then((module) => module.Playground));
const AdminView = lazily(() => import('../admin/admin-view.js').then((module) => module.AdminView));

/** Views by the first part of the path; each gets the others. */
const VIEWS: Readonly<Record<string, FunctionComponent<{ path: readonly string[] }>>> = {
  runs: ({ path: [id] }) => (id === undefined ? <RunsView /> : <RunView key={id} id={id} />),
  sweeps: ({ path: [id] }) => (id === undefined ? <SweepsView /> : <SweepView key={id} id={id} />),
  compare: () => <CompareView />,
  fleet: () => <FleetView />,
  datasets: ({ path: [id] }) => (id === undefined ? <DatasetsView /> : <DatasetView key={id} id={id} />),
  models: ({ path: [id] }) => (id === undefined ? <ModelsView /> : <ModelView key={id} id={id} />),
  playground: () => <Playground />,
  new: () => <NewView />,
  admin: () => <AdminView />,
};

export function App() {
  useEffect(followAddress, []);
  useEffect(() => setTitle(titleOf(route.value.path[0] ?? firstPage())), [route.value.path.join('/')]);
  const { fault } = useLoaded(readSession, []);
  const { path } = route.value;
  const code = path[0] === 'sign-in' ? (path[1] ?? null) : null;
  if (path[0] === 'sign-in' && code === null) return <SignIn code={null} />;
  if (session.value.state === 'unknown') return fault.value && <Notice fault={fault.value} />;
  if (code !== null) return <SignIn key={code} code={code} />;
  if (path[0] === 'shared') return <OpenShared token={path[1] ?? ''} />;
  if (session.value.state === 'out') return <SignIn code={null} />;
  const link = share.value;
  if (link !== null)
    return (
      <SharedShell link={link}>
        <RunView key={link.job_id} id={link.job_id} />
      </SharedShell>
    );
  const [name = firstPage(), ...rest] = path;
  const page = PAGES.find((one) => one.name === name);
  const View = VIEWS[name];
  return (
    <Shell>
      <Suspense fallback={<p class="muted">…</p>}>
        {View === undefined || page === undefined ? (
          <NoSuchView />
        ) : mayOpen(page) ? (
          <View path={rest} />
        ) : (
          <NoAccess scopes={page.scopes} />
        )}
      </Suspense>
    </Shell>
  );
}

/** A view may put the name of its record in place of it. */
function titleOf(name: string): string {
  const page = PAGES.find((one) => one.name === name);
  return page?.label ?? (name === 'compare' ? 'Comparison' : '');
}

function NoAccess({ scopes }: { scopes: readonly Scope[] }) {
  return (
    <Empty title="You may not open this page.">
      <p>
        It needs the scope {scopes.join(' or ')}, which this session does not have. Ask an administrator of
        the project for a key that has it.
      </p>
    </Empty>
  );
}

function NoSuchView() {
  return (
    <p class="empty">
      There is no such page. <a href="#/">Back to the first one</a>
    </p>
  );
}
