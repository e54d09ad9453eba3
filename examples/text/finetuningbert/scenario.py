"""Fine-tuning a pretrained encoder to decide whether two sentences say the same."""

from scena import AdamW, PolynomialDecay, ScenarioBase, TrainerParams, Trigger

from .params import PairPipelines, PairPredictorParams, PairScenarioParams, PairsParams, Pretrained


class PairScenario(ScenarioBase[PairScenarioParams, PairPipelines]):
    """Decides whether two sentences say the same."""

    predict_source = PairsParams
    predictor_params = PairPredictorParams

    @classmethod
    def default_trainer_params(cls) -> TrainerParams[PairScenarioParams, PairPipelines]:
        params = super().default_trainer_params()
        params.epochs = 3
        params.warmstart = Pretrained()
        params.no_train_scope = ".*/encoder/(embeddings|block[01])"
        # two learning rates: the head's is 0.002, and what is pretrained moves at a tenth of it
        params.learning_rate = PolynomialDecay(lr=0.002, warmup=Trigger(50, "steps"), end_fraction=0.01)
        params.optimizer = AdamW(weight_decay=0.01, clip_global_norm=1.0, lr_factors=["/encoder/=0.1"])
        params.lav_every_n, params.val_every_n = Trigger(1), Trigger(0)  # LAV measures the accuracy too
        params.gen.train.batch_size, params.gen.val.batch_size = 32, 100
        return params
