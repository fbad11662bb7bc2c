# -- the inner loop -------------------------------------------------------------------------------------------------

CHUNK = 128  # how many examples' graphs are alive at once; more would cost memory and gain no time

_Example = tuple[Any, Any]
_Outcome = tuple[float, ...]  # a loss, then the metric where there is one


class _DivergedError(Exception):
    """The loss of a batch is not finite."""


class _Task(NamedTuple):
    """What is learnt: a model, and how it is judged."""

    model: Model
    loss: Loss
    metric: Metric | None
    regularization: Callable[[], Value] | None = None

    def learn(
        self, batches: list[list[_Example]], optimizer: Optimizer, clip_norm: float | None, bar: _Bar
    ) -> _Outcome:
        """One step a batch; returns the mean outcome over all examples, each as it was when it was learnt."""
        outcomes = []
        for number, batch in enumerate(batches):
            optimizer.zero_grad()
            outcome = self._gradient(batch)
            if not isfinite(outcome[0]):
                raise _DivergedError(
                    f"batch {number}: the loss is {outcome[0]}; training ended before the step that would spoil "
                    f"the parameters. Try a learning rate below {optimizer.lr:g}"
                )
            if clip_norm is not None:
                clip_grad_norm(optimizer.trainable, clip_norm)
            optimizer.step()
            outcomes.append(outcome)
            bar.batch()
        count = sum(map(len, batches))
        weights = [len(batch) / count for batch in batches]
        return tuple(sum(w * x for w, x in zip(weights, column, strict=True)) for column in zip(*outcomes, strict=True))

    def measure(self, examples: list[_Example]) -> _Outcome:
        """The mean outcome of examples that are not learnt from."""
        with no_grad():
            return _mean([self._example(x, y)[1] for x, y in examples])

    def _gradient(self, batch: list[_Example]) -> _Outcome:
        """Add the gradient of the batch's mean loss, and of the regularization, to the parameters."""
        penalty = 0.0
        if self.regularization is not None:
            added = self.regularization()
            added.backward()
            penalty = added.data
        outcomes: list[_Outcome] = []
        for start in range(0, len(batch), CHUNK):
            results = [self._example(x, y) for x, y in batch[start : start + CHUNK]]
            total(loss for loss, _ in results).backward(1.0 / len(batch))
            outcomes += [outcome for _, outcome in results]
        loss, *score = _mean(outcomes)
        return (loss + penalty, *score)

    def _example(self, x: Any, y: Any) -> tuple[Value, _Outcome]:
        """The loss of one example, and its outcome."""
        prediction = self.model(x)
        loss = self.loss(prediction, y)
        return loss, (loss.data,) if self.metric is None else (loss.data, float(self.metric(prediction, y)))


def _mean(outcomes: list[_Outcome]) -> _Outcome:
    return tuple(sum(column) / len(outcomes) for column in zip(*outcomes, strict=True))


def _append(outcome: _Outcome, *curves: list[float]) -> None:
    for curve, number in zip(curves, outcome, strict=False):
        curve.append(number)


# -- what is right --------------------------------------------------------------------------------------------------


def _greatest(prediction: Sequence[Value], target: int) -> bool:
    return max(range(len(prediction)), key=prediction.__getitem__) == target


def _same_side(cut: float, target_cut: float) -> Metric:
    """Whether prediction and target lie on the same side, each of its own cut; for lists, how many do."""

    def right(prediction: Any, target: Any) -> float:
        if not hasattr(prediction, "__len__"):
            return float((prediction > cut) == (target > target_cut))
        return _mean([(right(p, t),) for p, t in zip(prediction, target, strict=True)])[0]

    return right


_METRICS: dict[Loss, Metric] = {
    cross_entropy: _greatest,
    hinge: _same_side(0.0, 0.0),
    binary_cross_entropy: _same_side(0.5, 0.5),
    binary_cross_entropy_with_logits: _same_side(0.0, 0.5),
}


def _metric(metric: Metric | str | None, loss: Loss) -> Metric | None:
    if metric == "auto":
        return _METRICS.get(loss)
    if metric is None or callable(metric):
        return metric
    raise ArgumentError(f"metric is {metric!r}; expected 'auto', None or a function of a prediction and a target")


