import type { FieldError, JobSpec, Model, ResolvedJobSpec } from '../../../contracts/index.js';
import { fieldError } from '../../common/field-error.js';
import { architectureOf } from '../../model/families/families.js';
import { importConfig } from '../../model/import.js';
import { type ParamKind, paramKinds, paramName } from '../../model/params.js';
import { momentsOf } from '../optimizer.js';
import { splitParams } from '../param-groups.js';
import { initFromOf } from './given-init.js';
import type { ModelSource } from './source.js';

const AT = '/model/init_from';

/** Checks that the fields that define the model are not combined wrongly. */
export function checkGiven(given: JobSpec['model']): FieldError[] {
  const { preset, config } = given;
  const errors: FieldError[] = [];
  if (preset !== undefined && config !== undefined)
    errors.push(fieldError('/model', 'exactly_one_of', 'set preset or config, not both'));
  const { model, uri, restore = 'weights' } = initFromOf(given) ?? {};
  const hasModel = model !== undefined || uri !== undefined;
  if (preset === undefined && config === undefined && !hasModel)
    errors.push(
      fieldError(
        '/model',
        'exactly_one_of',
        'set exactly one of preset, config, init_from.model, init_from.uri',
      ),
    );
  if (hasModel && restore === 'continue')
    errors.push(
      fieldError(
        `${AT}/restore`,
        'field_without_effect',
        'for a model the value must be weights, full or weights_16bit',
      ),
    );
  return errors;
}

/** Checks that a configuration given beside a model has the model's parameters. */
export function checkInitModel(spec: ResolvedJobSpec, { model }: ModelSource): FieldError[] {
  const theirs = importConfig(model.config).config;
  if (theirs === null) return [];
  const errors = checkState(spec, model);
  const wanted = paramKinds(architectureOf(spec.model.config));
  const difference = firstDifference(wanted, paramKinds(architectureOf(theirs)));
  if (difference === null) return errors;
  return [
    ...errors,
    fieldError(`${AT}/model`, 'init_model_mismatch', `model ${model.id} has other parameters: ${difference}`),
  ];
}

/** Checks that the model has the optimizer states of every trained parameter, for a full restore. */
function checkState(spec: ResolvedJobSpec, model: Model): FieldError[] {
  const at = `${AT}/restore`;
  const { id, optimizer_states, frozen_parameters = [] } = model;
  const { optimizer } = spec.train;
  const { restore = 'weights' } = spec.model.init_from ?? {};
  if (restore === 'weights') return [];
  if (optimizer_states === undefined) {
    const message =
      `none of the files of model ${id} has an optimizer's states or number of updates, which ${restore} restores: write ` +
      'weights, or upload a DeepSpeed checkpoint that has them';
    return [fieldError(at, 'field_without_effect', message, 'weights')];
  }
  const needed = momentsOf(optimizer);
  if (needed.join() !== optimizer_states.join()) {
    const [here, there] = [needed, optimizer_states].map((names) => names.join(' and ') || 'nothing');
    const message = `model ${id} has ${there} for each parameter, and ${optimizer.type} needs ${here}`;
    return [fieldError(at, 'checkpoint_optimizer_mismatch', message, 'weights')];
  }
  const changed = frozenOtherwise(spec, frozen_parameters);
  if (changed === null) return [];
  const [there, here] = frozen_parameters.includes(changed)
    ? ['frozen', 'trains it']
    : ['trained', 'freezes it'];
  const message = `${changed} was ${there} in model ${id}, and the job ${here}`;
  return [fieldError(at, 'checkpoint_frozen_mismatch', message, 'weights')];
}

/**
 * Returns the name of a parameter that is frozen only by the job or only in the model; null if there is none.
 */
function frozenOtherwise(spec: ResolvedJobSpec, frozenParameters: readonly string[]): string | null {
  const theirs = new Set(frozenParameters);
  const ours = new Set<string>();
  // Stops after as many names as the model has, regardless of the job's frozen parameters.
  for (const { frozen } of splitParams(spec))
    for (const name of frozen.names()) {
      if (!theirs.has(name)) return name;
      ours.add(name);
    }
  return frozenParameters.find((name) => !ours.has(name)) ?? null;
}

function firstDifference(here: readonly ParamKind[], there: readonly ParamKind[]): string | null {
  const found = new Map(there.map((kind) => [kind.name, kind]));
  for (const kind of here) {
    const other = found.get(kind.name);
    const missing = nameBeyond(kind, other);
    if (missing !== null) return `it has no ${missing}`;
    if (other?.shape.join() !== kind.shape.join())
      return `${paramName(kind, 0, 0)} has shape [${other?.shape}] in the model and [${kind.shape}] in the job`;
  }
  const known = new Map(here.map((kind) => [kind.name, kind]));
  const [unexpected] = there.flatMap((kind) => nameBeyond(kind, known.get(kind.name)) ?? []);
  return unexpected === undefined ? null : `the job's model has no ${unexpected}`;
}

/** Returns the name of a parameter of a kind that the other model does not have. */
function nameBeyond(kind: ParamKind, other: ParamKind | undefined): string | null {
  if (other === undefined) return paramName(kind, 0, 0);
  if (kind.layers > other.layers) return paramName(kind, other.layers, 0);
  if ((kind.experts ?? 1) > (other.experts ?? 1)) return paramName(kind, 0, other.experts ?? 1);
  return null;
}
