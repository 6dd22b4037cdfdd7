import type { FieldError, JobSpec, Model, ResolvedJobSpec } from '../index.js';
import { architectureOf, importConfig } from '../model/index.js';
import { type ModelParam, modelParams } from '../model-params.js';
import { fieldError } from './field-error.js';
import { initFromOf } from './given-init.js';

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
export function checkInitModel(
  { model: ours, train: { optimizer } }: ResolvedJobSpec,
  { model }: ModelSource,
): FieldError[] {
  const restore = ours.init_from?.restore;
  const theirs = importConfig(model.config).config;
  if (theirs === null) return [];
  const errors = checkState(restore, optimizer.type, model);
  const wanted = modelParams(architectureOf(ours.config));
  const difference = firstDifference(wanted, modelParams(architectureOf(theirs)));
  if (difference === null) return errors;
  return [
    ...errors,
    fieldError(`${AT}/model`, 'init_model_differs', `model ${model.id} has other parameters: ${difference}`),
  ];
}

/** Optimizers that keep `exp_avg` and `exp_avg_sq`. */
const ADAMS: readonly string[] = ['adamw', 'adam', 'lamb'];

/** A full restore needs the state of an optimizer of the same kind. */
function checkState(restore: string | undefined, type: string, { id, optimizer_steps }: Model): FieldError[] {
  const at = `${AT}/restore`;
  if (restore !== 'full') return [];
  if (optimizer_steps === undefined) {
    const message = `model ${id} has weights and nothing else; upload a DeepSpeed universal checkpoint for more`;
    return [fieldError(at, 'field_without_effect', message, 'weights')];
  }
  if (ADAMS.includes(type)) return [];
  const message = `model ${id} has the state of an Adam, and the job trains with ${type}`;
  return [fieldError(at, 'checkpoint_optimizer_differs', message, 'weights')];
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
