/** Families of which some layers may have a sliding window. */
import type { ConfigReader } from '../reader.js';
import type { ConfigOf } from './family.js';
import { LIMITS } from './limits.js';

export type LayerTypes = Pick<ConfigOf<'qwen2'>, 'use_sliding_window' | 'sliding_window' | 'layer_types'>;

interface LayerTypeDefaults {
  window: number | null;
  /** Returns whether a layer has the window that is used. */
  slides(layer: number): boolean;
}

const TYPES = ['full_attention', 'sliding_attention'];

export function readLayerTypes(
  reader: ConfigReader,
  layers: number,
  defaults: LayerTypeDefaults,
): LayerTypes {
  const useSlidingWindow = reader.flag('use_sliding_window', false);
  const window = reader.integerOrNull('sliding_window', { ...LIMITS.window, fallback: defaults.window });
  const slidingWindow = useSlidingWindow ? window : null;
  const given = reader.list('layer_types', TYPES, 'Other kinds of attention are not supported.');
  if (given !== undefined && given.length !== layers)
    reader.fail('layer_types', 'wrong_length', `has ${given.length} entries; num_hidden_layers is ${layers}`);
  if (slidingWindow === null && given?.includes('sliding_attention'))
    reader.fail(
      'layer_types',
      'model_field_conflict',
      'a layer has the type sliding_attention, but no window is set: set use_sliding_window and sliding_window',
    );
  const byDefault = Array.from({ length: layers }, (_, layer) =>
    slidingWindow !== null && defaults.slides(layer) ? 'sliding_attention' : 'full_attention',
  );
  return {
    use_sliding_window: useSlidingWindow,
    sliding_window: slidingWindow,
    layer_types: (given ?? byDefault) as LayerTypes['layer_types'],
  };
}

export function layerWindows({ layer_types, sliding_window }: LayerTypes): number[] {
  return layer_types.map((type) => (type === 'sliding_attention' ? (sliding_window ?? 0) : 0));
}
