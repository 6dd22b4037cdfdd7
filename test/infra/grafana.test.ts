/** The Grafana dashboard has the form of its schema version, and asks for metrics and labels that the programs have. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { ApiMetrics } from '../../api/metrics/api-metrics.js';
import type { PoolReport } from '../../autoscaler/controller/types.js';
import { AutoscalerMetrics } from '../../autoscaler/metrics.js';
import { decided } from '../../autoscaler/testing/scene.js';
import { projectRoot } from '../../platform/process/root.js';
import { Check, type Static, Type } from '../../platform/schema.js';
import { AgentMetrics } from '../../worker/agent/metrics/agent-metrics.js';

const closed = { additionalProperties: false };
const count = Type.Integer({ minimum: 0 });
const text = Type.String({ minLength: 1 });
const source = Type.Object(
  { type: Type.Literal('prometheus'), uid: Type.String({ pattern: '^\\$\\{datasource\\}$' }) },
  closed,
);
const gridPos = Type.Object(
  { x: count, y: count, w: Type.Integer({ minimum: 1 }), h: Type.Integer({ minimum: 1 }) },
  closed,
);

const Row = Type.Object(
  {
    id: count,
    type: Type.Literal('row'),
    title: text,
    collapsed: Type.Literal(false),
    gridPos,
    panels: Type.Array(Type.Null(), { maxItems: 0 }),
  },
  closed,
);

const Panel = Type.Object(
  {
    id: count,
    type: Type.Union([Type.Literal('stat'), Type.Literal('timeseries')]),
    title: text,
    description: Type.Optional(text),
    datasource: source,
    gridPos,
    fieldConfig: Type.Object(
      {
        defaults: Type.Object({ unit: text, min: Type.Optional(Type.Number()) }, closed),
        overrides: Type.Array(Type.Null(), { maxItems: 0 }),
      },
      closed,
    ),
    options: Type.Optional(Type.Object({ graphMode: text, colorMode: text }, closed)),
    targets: Type.Array(Type.Object({ refId: text, expr: text, legendFormat: Type.Optional(text) }, closed), {
      minItems: 1,
    }),
  },
  closed,
);

/**
 * Fields of Grafana's classic dashboard model that the file uses: schema version 39 (Grafana 11), which later versions
 * convert.
 */
const Dashboard = Type.Object(
  {
    title: text,
    uid: Type.String({ pattern: '^[a-zA-Z0-9_-]{1,40}$' }),
    description: text,
    tags: Type.Array(text),
    schemaVersion: Type.Literal(39),
    editable: Type.Boolean(),
    graphTooltip: Type.Integer({ minimum: 0, maximum: 2 }),
    refresh: text,
    time: Type.Object({ from: text, to: text }, closed),
    timezone: text,
    annotations: Type.Object({ list: Type.Array(Type.Null(), { maxItems: 0 }) }, closed),
    templating: Type.Object(
      {
        list: Type.Array(
          Type.Object({
            type: Type.Union([Type.Literal('datasource'), Type.Literal('query')]),
            name: text,
            label: text,
            query: text,
          }),
        ),
      },
      closed,
    ),
    panels: Type.Array(Type.Union([Row, Panel])),
  },
  closed,
);

const check = new Check(Dashboard, { every: true });

function readDashboard(): Static<typeof Dashboard> {
  const found: unknown = JSON.parse(
    readFileSync(join(projectRoot(), 'infra', 'grafana', 'zerofleet.json'), 'utf8'),
  );
  if (!check.fits(found)) throw new Error(check.problems().join('\n'));
  return found;
}

/** Metrics in Prometheus' text format that API, agent and autoscaler serve, after each counter was incremented once. */
async function servedText(): Promise<string> {
  const [api, autoscaler] = [new ApiMetrics(), new AutoscalerMetrics()];
  const agent = new AgentMetrics({ pool: 'default', slots: 1 });
  api.answered('getJob', 200, 1);
  const pool = {
    name: 'default',
    groups: [],
    machines: null,
    workers: 1,
    slots: 1,
    used_slots: 1,
    running: 1,
    waiting: 1,
  };
  const report: PoolReport = {
    ...decided({}).report,
    machines: { m: { running: 1, starting: 0, requested: 0, terminating: 0 } },
    problems: [{ type: 'm', code: 'quota', message: 'm' }],
    pods: [
      { ...{ name: 'p', type: 'm', node: null, phase: 'pending' }, reason: 'r', message: null, log: null },
    ],
  };
  autoscaler.decided('default', report);
  autoscaler.showing(new Map([['default', report]]));
  autoscaler.acted('default', { kind: 'retire', machine: 'i', reason: 'idle' });
  autoscaler.machineEnded('default', 'm', 'time_limit');
  autoscaler.failed('capacity');
  agent.failed('rank_lost');
  agent.preempted('worker_draining');
  const served = [await api.scrape([pool]), await autoscaler.scrape(), await agent.scrape()];
  return served.map(({ text }) => text).join('\n');
}

/** Type and labels of each metric; those of a histogram have the names of its series. */
async function servedMetrics(): Promise<Map<string, { type: string; labels: Set<string> }>> {
  const text = await servedText();
  const found = new Map<string, { type: string; labels: Set<string> }>();
  for (const [, metric = '', type = ''] of text.matchAll(/^# TYPE (\w+) (\w+)$/gm)) {
    const names = type === 'histogram' ? ['_bucket', '_count', '_sum'].map((end) => metric + end) : [metric];
    for (const name of names) {
      const series = new RegExp(`^${name}\\{(.*)\\} `, 'gm');
      const labels = [...text.matchAll(series)].flatMap(([, inner = '']) =>
        [...inner.matchAll(/(\w+)="/g)].map(([, label = '']) => label),
      );
      found.set(name, { type, labels: new Set(labels) });
    }
  }
  return found;
}

const all = (text: string, pattern: RegExp) => [...text.matchAll(pattern)].map(([, word = '']) => word);

t.test('panels do not overlap, and have ids of their own', async (t) => {
  const { panels } = readDashboard();
  t.equal(new Set(panels.map(({ id }) => id)).size, panels.length);
  const taken = new Set<string>();
  for (const { title, gridPos: at } of panels) {
    t.ok(at.x + at.w <= 24, title);
    for (let x = at.x; x < at.x + at.w; x += 1) {
      for (let y = at.y; y < at.y + at.h; y += 1) {
        t.notOk(taken.has(`${x} ${y}`), `${title} covers another panel`);
        taken.add(`${x} ${y}`);
      }
    }
  }
});

t.test('the programs have the metrics and labels of all queries', async (t) => {
  const { panels, templating } = readDashboard();
  const served = await servedMetrics();
  const targets = panels.flatMap((panel) => ('targets' in panel ? panel.targets : []));
  const variables = templating.list.filter(({ type }) => type === 'query');
  t.strictSame(
    variables.map(({ query }) => query),
    ['label_values(zerofleet_pool_workers, pool)'],
  );
  t.ok(targets.length > 40);
  for (const { expr, legendFormat = '' } of targets) {
    const names = all(expr, /\b(zerofleet_\w+)/g);
    t.not(names.length, 0, expr);
    const labels = new Set<string>();
    for (const name of names) {
      const metric = served.get(name);
      t.ok(metric, `${name} exists`);
      for (const label of metric?.labels ?? []) labels.add(label);
      // The rate of a gauge and the bare value of a counter have no meaning.
      const rated = new RegExp(`\\b(rate|increase)\\(${name}\\b`).test(expr);
      t.equal(rated, metric?.type !== 'gauge', expr);
    }
    const grouped = all(expr, /\bby \(([^)]*)\)/g).flatMap((list) => list.split(', '));
    for (const label of [...grouped, ...all(expr, /(\w+)=~?"/g)])
      t.ok(labels.has(label), `${label} in ${expr}`);
    for (const label of all(legendFormat, /\{\{(\w+)\}\}/g))
      t.ok(grouped.includes(label), `${legendFormat} of ${expr}`);
    t.equal(expr.match(/\(/g)?.length, expr.match(/\)/g)?.length, expr);
    for (const variable of all(expr, /\$(\w+)/g)) t.match(variable, /^(pool|__rate_interval)$/);
  }
});

t.test('each metric of a pool that the API has is shown', async (t) => {
  const text = JSON.stringify(readDashboard());
  for (const name of (await servedMetrics()).keys())
    if (name.startsWith('zerofleet_pool_')) t.match(text, name);
});
