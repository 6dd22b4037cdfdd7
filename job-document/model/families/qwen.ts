/** Common part of Qwen2 and Qwen3: some layers, by default the last ones, may have a sliding window. */
import type { ConfigReader } from '../reader.js';
import type { ConfigOf } from './family.js';
import { LIMITS } from './limits.js';

type LayerTypes = Pick<
  ConfigOf<'qwen2'>,
  'use_sliding_window' | 'sliding_window' | 'max_window_layers' | 'layer_types'
>;

const TYPES = ['full_attention', 'sliding_attention'];

export function readLayerTypes(reader: ConfigReader, layers: number): LayerTypes {
  const useSlidingWindow = reader.flag('use_sliding_window', false);
  const window = reader.integerOrNull('sliding_window', { ...LIMITS.window, fallback: 4096 });
  const slidingWindow = useSlidingWindow ? window : null;
  const maxWindowLayers = reader.integer('max_window_layers', { min: 0, max: 1024, fallback: 28 });
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
    slidingWindow !== null && layer >= maxWindowLayers ? 'sliding_attention' : 'full_attention',
  );
  const layerTypes = (given ?? byDefault) as LayerTypes['layer_types'];
  return {
    use_sliding_window: useSlidingWindow,
    sliding_window: slidingWindow,
    max_window_layers: maxWindowLayers,
    layer_types: layerTypes,
  };
}

export function layerWindows({ layer_types, sliding_window }: LayerTypes): number[] {
  return layer_types.map((type) => (type === 'sliding_attention' ? (sliding_window ?? 0) : 0));
}
