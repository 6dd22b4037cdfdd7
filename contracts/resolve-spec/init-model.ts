import type { FieldError, JobSpec, Model, ResolvedJobSpec } from '../index.js';
import { architectureOf, importConfig } from '../model/index.js';
import { type ModelParam, modelParams } from '../model-params.js';
import { fieldError } from './field-error.js';
import { initFromOf } from './given-init.js';
import { momentsOf } from './optimizer.js';
import { splitFrozen } from './param-groups.js';

/** An uploaded model that a job may begin with. */
export interface ModelSource {
  model: Model;
}

const AT = '/model/init_from';

/** Which of the fields that say what the model is may stand beside each other. */
export function checkGiven(given: JobSpec['model']): FieldError[] {
  const { preset, config } = given;
  const errors: FieldError[] = [];
  if (preset !== undefined && config !== undefined)
    errors.push(fieldError('/model', 'exactly_one_of', 'give preset or config, not both'));
  const { model, uri, restore = 'weights' } = initFromOf(given) ?? {};
  const has_model = model !== undefined || uri !== undefined;
  if (preset === undefined && config === undefined && !has_model)
    errors.push(
      fieldError(
        '/model',
        'exactly_one_of',
        'give exactly one of preset, config, init_from.model, init_from.uri',
      ),
    );
  if (has_model && restore !== 'weights' && restore !== 'full')
    errors.push(fieldError(`${AT}/restore`, 'field_without_effect', 'of a model it is weights or full'));
  return errors;
}

/** The parameters of a configuration that was given beside a model must be the model's. */
export function checkInitModel(spec: ResolvedJobSpec, { model }: ModelSource): FieldError[] {
  const theirs = importConfig(model.config).config;
  if (theirs === null) return [];
  const errors = checkState(spec, model);
  const wanted = modelParams(architectureOf(spec.model.config));
  const difference = firstDifference(wanted, modelParams(architectureOf(theirs)));
  if (difference === null) return errors;
  return [
    ...errors,
    fieldError(`${AT}/model`, 'init_model_differs', `model ${model.id} has other parameters: ${difference}`),
  ];
}

/** A full restore needs what the optimizer keeps, for every parameter that is trained. */
function checkState({ model: ours, train: { optimizer } }: ResolvedJobSpec, model: Model): FieldError[] {
  const at = `${AT}/restore`;
  const { id, optimizer_states, frozen_parameters } = model;
  if (ours.init_from?.restore !== 'full') return [];
  if (optimizer_states === undefined) {
    const message = `model ${id} has weights and nothing else; upload a DeepSpeed checkpoint for more`;
    return [fieldError(at, 'field_without_effect', message, 'weights')];
  }
  const needed = momentsOf(optimizer);
  if (needed.join() !== optimizer_states.join()) {
    const [here, there] = [needed, optimizer_states].map((names) => names.join(' and ') || 'nothing');
    const message = `model ${id} has ${there} of each parameter, and ${optimizer.type} keeps ${here}`;
    return [fieldError(at, 'checkpoint_optimizer_differs', message, 'weights')];
  }
  const params = modelParams(architectureOf(ours.config));
  const frozen = new Set(splitFrozen(params, optimizer.param_groups).frozen.map(({ name }) => name));
  const theirs = new Set(frozen_parameters);
  const changed = params.find(({ name }) => frozen.has(name) !== theirs.has(name));
  if (changed === undefined) return [];
  const [there, here] = frozen.has(changed.name) ? ['trained', 'freezes it'] : ['frozen', 'trains it'];
  const message = `${changed.name} was ${there} in model ${id}, and the job ${here}`;
  return [fieldError(at, 'checkpoint_frozen_differs', message, 'weights')];
}

function firstDifference(here: readonly ModelParam[], there: readonly ModelParam[]): string | null {
  const shapes = new Map(there.map(({ name, shape }) => [name, shape]));
  for (const { name, shape } of here) {
    const found = shapes.get(name);
    if (found === undefined) return `it has no ${name}`;
    if (found.join() !== shape.join()) return `${name} has shape [${found}] there and [${shape}] here`;
    shapes.delete(name);
  }
  const [stranger] = shapes.keys();
  return stranger === undefined ? null : `its ${stranger} does not exist here`;
}
