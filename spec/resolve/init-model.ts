import type { FieldError, JobSpec, Model, ResolvedJobSpec } from '../../contracts/index.js';
import { fieldError } from '../common/field-error.js';
import { architectureOf } from '../model/families/families.js';
import { importConfig } from '../model/import.js';
import { type ParamKind, paramKinds, paramName } from '../model/params.js';
import { initFromOf } from './given-init.js';
import { momentsOf } from './optimizer.js';
import { splitParams } from './param-groups.js';

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
  const wanted = paramKinds(architectureOf(spec.model.config));
  const difference = firstDifference(wanted, paramKinds(architectureOf(theirs)));
  if (difference === null) return errors;
  return [
    ...errors,
    fieldError(`${AT}/model`, 'init_model_differs', `model ${model.id} has other parameters: ${difference}`),
  ];
}

/** A full restore needs what the optimizer keeps, for every parameter that is trained. */
function checkState(spec: ResolvedJobSpec, model: Model): FieldError[] {
  const at = `${AT}/restore`;
  const { id, optimizer_states, frozen_parameters = [] } = model;
  const { optimizer } = spec.train;
  if (spec.model.init_from?.restore !== 'full') return [];
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
  const changed = frozenOtherwise(spec, frozen_parameters);
  if (changed === null) return [];
  const [there, here] = frozen_parameters.includes(changed)
    ? ['frozen', 'trains it']
    : ['trained', 'freezes it'];
  const message = `${changed} was ${there} in model ${id}, and the job ${here}`;
  return [fieldError(at, 'checkpoint_frozen_differs', message, 'weights')];
}

/** The name of a parameter that is frozen by the job alone or in the model alone; null where there is none. */
function frozenOtherwise(spec: ResolvedJobSpec, frozen_parameters: readonly string[]): string | null {
  const theirs = new Set(frozen_parameters);
  const ours = new Set<string>();
  // Ends behind as many names as the model has, whatever the job freezes.
  for (const { frozen } of splitParams(spec))
    for (const name of frozen.names()) {
      if (!theirs.has(name)) return name;
      ours.add(name);
    }
  return frozen_parameters.find((name) => !ours.has(name)) ?? null;
}

function firstDifference(here: readonly ParamKind[], there: readonly ParamKind[]): string | null {
  const found = new Map(there.map((kind) => [kind.name, kind]));
  for (const kind of here) {
    const other = found.get(kind.name);
    const missing = nameBeyond(kind, other);
    if (missing !== null) return `it has no ${missing}`;
    if (other?.shape.join() !== kind.shape.join())
      return `${paramName(kind, 0, 0)} has shape [${other?.shape}] there and [${kind.shape}] here`;
  }
  const known = new Map(here.map((kind) => [kind.name, kind]));
  const [stranger] = there.flatMap((kind) => nameBeyond(kind, known.get(kind.name)) ?? []);
  return stranger === undefined ? null : `its ${stranger} does not exist here`;
}

/** The name of a parameter of a kind which another model, that has so much of the kind, does not have. */
function nameBeyond(kind: ParamKind, other: ParamKind | undefined): string | null {
  if (other === undefined) return paramName(kind, 0, 0);
  if (kind.layers > other.layers) return paramName(kind, other.layers, 0);
  if ((kind.experts ?? 1) > (other.experts ?? 1)) return paramName(kind, 0, other.experts ?? 1);
  return null;
}
