import type { FunctionComponent } from 'preact';
import { Suspense } from 'preact/compat';
import { useEffect, useMemo } from 'preact/hooks';
import type { Job } from '../../../contracts/types.js';
import { lazily } from '../app/lazily.js';
import { go, linkTo, route } from '../app/router.js';
import { may } from '../app/session.js';
import { setTitle } from '../app/title.js';
import { ProgressBar, StateBadge } from '../parts/badge.js';
import { words } from '../parts/format.js';
import { Notice } from '../parts/notice.js';
import { Tabs } from '../parts/tabs.js';
import { RunActions } from './actions/run-actions.js';
import { ShareRun } from './actions/share.js';
import { LiveRun } from './live-run.js';
import { Overview } from './overview.js';

const tab = <T extends string>(
  load: () => Promise<Record<T, FunctionComponent<{ run: LiveRun }>>>,
  name: T,
) => lazily(() => load().then((module) => module[name]));

const TABS: Readonly<Record<string, FunctionComponent<{ run: LiveRun }>>> = {
  overview: Overview,
  charts: tab(() => import('./charts/charts.js'), 'Charts'),
  checkpoints: tab(() => import('./checkpoints/checkpoints.js'), 'Checkpoints'),
  samples: tab(() => import('./samples.js'), 'Samples'),
  events: tab(() => import('./events.js'), 'Events'),
  logs: tab(() => import('./logs.js'), 'Logs'),
  document: tab(() => import('./document.js'), 'Document'),
  attempts: tab(() => import('./attempts.js'), 'Attempts'),
};

export function RunView({ id }: { id: string }) {
  const run = useMemo(() => new LiveRun(id), [id]);
  useEffect(() => {
    void run.run();
    return () => run.close();
  }, [run]);
  const current = route.value.query.get('tab') ?? 'overview';
  const Tab = TABS[current] ?? Overview;
  return (
    <>
      {run.fault.value && <Notice fault={run.fault.value} />}
      {run.job.value === null && run.fault.value === null && <p class="muted">…</p>}
      {run.job.value && (
        <>
          <Head run={run} job={run.job.value} />
          <Tabs
            label="Parts of the run"
            names={Object.keys(TABS)}
            current={current}
            onChoose={(name) =>
              go(linkTo(['runs', id], { tab: name === 'overview' ? '' : name }), { replace: true })
            }
          >
            <Suspense fallback={<p class="muted">…</p>}>
              <Tab run={run} />
            </Suspense>
          </Tabs>
        </>
      )}
    </>
  );
}

function Head({ run, job }: { run: LiveRun; job: Job }) {
  const { id, name, state, reason, failure, labels, spec, progress, queue_position } = job;
  useEffect(() => setTitle(`${name || 'unnamed'}, ${state}`), [name, state]);
  return (
    <section class="head">
      <div class="title">
        <h1>{name || 'unnamed'}</h1>
        <StateBadge state={state} />
        {reason && <span class="muted">{words(reason)}</span>}
        {queue_position !== null && <span class="muted">{queue_position} in the queue</span>}
        {run.isLive.value && <span class="live">live</span>}
        <span class="spring" />
        <div class="group">
          <RunActions run={run} job={job} />
          {may('jobs:write') && <ShareRun id={id} />}
        </div>
      </div>
      <p class="mono muted small">{id}</p>
      {Object.keys(labels).length > 0 && (
        <p class="labels">
          {Object.entries(labels).map(([label, value]) => (
            <span key={label} class="badge">
              {label}={value}
            </span>
          ))}
        </p>
      )}
      {spec.notes !== '' && <p class="notes">{spec.notes}</p>}
      {failure && (
        <Notice fault={{ code: failure.code, message: failure.message, fields: failure.errors ?? [] }} />
      )}
      <ProgressBar percent={progress.percent} label="Progress" />
    </section>
  );
}
