import { effect, useSignal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import type { Dataset } from '../../../contracts/types.js';
import { collect } from '../../typescript/index.js';
import { bodyOf } from '../../typescript/transport.js';
import { client } from '../app/connection.js';
import { useLoaded } from '../app/loaded.js';
import { go, route } from '../app/router.js';
import { may } from '../app/session.js';
import { FieldsContext } from '../parts/labelled.js';
import { Notice } from '../parts/notice.js';
import { useStored } from '../parts/stored.js';
import '../style/data.css';
import '../style/new.css';
import { DataSection } from './data-section.js';
import { DocumentSection } from './document-section.js';
import { type Draft, FIRST_DRAFT, objectiveOf, valueAt } from './draft.js';
import { PATHS } from './fields.js';
import { GraderSection } from './grader-section.js';
import { FormContext } from './inputs.js';
import { ExportSection, IntegrationsSection } from './outputs.js';
import { Plan } from './plan.js';
import { PlanSection } from './plan-section.js';
import { SamplesSection } from './samples-section.js';
import { ModelSection, PlacementSection, TrainingSection } from './settings.js';
import { changeOf, hasSource } from './source.js';

/** Datasets and models that are offered; others can be written into the document. */
const OFFERED = 100;

async function readChoices() {
  const [datasets, models, pools, runs] = await Promise.all([
    may('datasets') ? collect(client.datasets.list({ limit: OFFERED }), OFFERED) : [],
    may('models') ? readModels() : { models: [], presets: [] },
    may('jobs:read') ? client.pools() : [],
    may('jobs:read') ? collect(client.jobs.list({ limit: OFFERED }), OFFERED) : [],
  ]);
  return { datasets, pools, runs, ...models };
}

async function readModels() {
  const query = { limit: OFFERED };
  const page = await bodyOf('list of models', client.http.GET('/v1/models', { params: { query } }));
  return { models: page.data, presets: page.presets };
}

/** Writes the document of a run, with the server's opinion of it, and starts it. */
export function NewView() {
  const draft = useStored<Draft>('draft', FIRST_DRAFT);
  const uploaded = useSignal<readonly Dataset[]>([]);
  const plan = useMemo(() => new Plan(), []);
  const { value, fault } = useLoaded(readChoices, []);
  const { query } = route.value;
  const source = useLoaded(async () => {
    if (!hasSource(query)) return;
    const change = await changeOf(query);
    draft.value = change(draft.value);
    go('#/new', { replace: true });
  }, [query.toString()]);
  useEffect(() => {
    const stop = effect(() => plan.check(draft.value));
    return () => {
      stop();
      plan.close();
    };
  }, [plan, draft]);
  const choices = value.value;
  const datasets = [...uploaded.value, ...(choices?.datasets ?? [])];
  const dataset = datasets.find(({ id }) => id === valueAt(draft.value, PATHS.dataset));
  return (
    <FormContext.Provider value={{ draft, plan }}>
      <FieldsContext.Provider value={plan.fields}>
        <h1>New run</h1>
        {fault.value && <Notice fault={fault.value} />}
        {source.fault.value && <Notice fault={source.fault.value} />}
        <div class="new">
          <div class="part">
            <DataSection
              datasets={datasets}
              onUpload={(made) => {
                uploaded.value = [made, ...uploaded.value];
              }}
            />
            <ModelSection
              presets={choices?.presets ?? []}
              models={choices?.models ?? []}
              runs={choices?.runs ?? []}
            />
            <TrainingSection dataset={dataset} />
            {objectiveOf(draft.value) === 'grpo' && <GraderSection dataset={dataset} />}
            <SamplesSection dataset={dataset} />
            <PlacementSection pools={choices?.pools ?? []} />
            <ExportSection />
            <IntegrationsSection />
            <DocumentSection />
          </div>
          <PlanSection />
        </div>
      </FieldsContext.Provider>
    </FormContext.Provider>
  );
}
